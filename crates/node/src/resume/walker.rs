//! The connection server's part of resuming: it finds the connections that were in the middle of a response when their
//! data server died, and decides what becomes of each.

use std::{
    collections::{BTreeSet, HashMap},
    net::Ipv4Addr,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Instant,
};

use anyhow::Result;
use baton_abi::{
    Change, KeptRequest, NO_DATA_SERVER, NO_POOL, TCB_ADOPTING, TCB_AT_DOOR, TCB_RESUMING, Tcb,
    TcbKey,
};
use baton_core::{
    Moment,
    mid_response_handover::Handovers,
    resume::{Action, Known as Response, Resumes},
};
use baton_dataplane::Orphans;
use baton_wire::{AnsweredRequest, Head, Heads, Outcome, Ready};
use tracing::{debug, info, warn};

use super::{
    Counts, Fate, Outgoing, heads, response_heads::ResponseHeads, response_id::ResponseId,
};
use crate::{
    connection_server::segments::{Known, Segments},
    peers::heartbeat::clock_now,
};

/// This bit is set in the numbers of orders for moves. Orders for resumed responses have numbers that start at the wall
/// clock, which is below it, so the two never meet.
const NUMBERS: u64 = 1 << 63;

/// Finds the entries of dead and draining data servers, and has their responses go on elsewhere.
pub struct Walker {
    /// This node's own address.
    pub(super) own: Ipv4Addr,
    pub(super) orphans: Orphans,
    segments: Segments,
    pub(super) resumes: Resumes<ResponseId, u16>,
    /// Responses that are leaving data servers that drain.
    pub(super) handovers: Handovers<ResponseId, u16>,
    heads: ResponseHeads,
    /// The messages that are to be sent next.
    pub(super) outgoing: Vec<Outgoing>,
    /// The slots of data servers that are taken for dead, as far as the task was told.
    pub(super) dead: BTreeSet<u16>,
    pub(super) counts: Arc<Counts>,
    /// Whether this process has not been told yet where it is.
    is_new: bool,
}

impl Walker {
    pub fn new(own: Ipv4Addr, orphans: Orphans, counts: Arc<Counts>) -> Result<Self> {
        Ok(Self {
            own,
            heads: ResponseHeads::new(orphans.capacity()),
            orphans,
            segments: Segments::open()?,
            resumes: Resumes::new(clock_now().as_nanos()),
            handovers: Handovers::new(NUMBERS | clock_now().as_nanos()),
            outgoing: Vec::new(),
            dead: BTreeSet::new(),
            counts,
            is_new: true,
        })
    }

    /// Whether no response is being resumed or moved.
    pub fn is_idle(&self) -> bool {
        self.resumes.open() == 0 && self.handovers.open() == 0
    }

    /// Acts on what happened to a data server or to this node, for example a death. A data server that lives again can
    /// be asked for responses like any other.
    pub fn handle_fate(
        &mut self,
        epoch: Instant,
        fate: Fate,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<()> {
        let now = Moment::after_epoch(epoch.elapsed());
        match fate {
            Fate::Dying { slot } => self.ask_others(slot, slots),
            Fate::Dead { slot } => self.handle_death(now, slot, slots),
            Fate::Alive { slot } => {
                self.dead.remove(&slot);
                self.resumes.handle_life(slot);
                Ok(())
            }
            Fate::Front { here } => {
                self.resumes.set_front(here);
                if std::mem::take(&mut self.is_new) && here {
                    self.end_forgotten_moves(slots)?;
                }
                Ok(())
            }
            Fate::Drains { slot } => self.look_for_busy(now, slot, slots),
            Fate::Undrained { slot } => {
                self.handovers.handle_undo(now, slot);
                Ok(())
            }
        }
    }

    pub fn handle_ready(&mut self, epoch: Instant, ready: &Ready) {
        let now = Moment::after_epoch(epoch.elapsed());
        let found = Response {
            digest: ready.digest,
            length: ready.length,
        };
        self.resumes
            .handle_ready(now, ready.number, ready.outcome, found);
        self.handovers
            .handle_ready(now, ready.number, ready.outcome, found);
    }

    /// Remembers how responses begin, and the request if the message contains one.
    pub fn hear_heads(
        &mut self,
        from: Ipv4Addr,
        heads: &Heads,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<()> {
        for head in heads.get() {
            self.heads.note(head);
        }
        if let Some((head, request)) = heads.request() {
            self.keep(from, head, request, slots)?;
        }
        let heard = heads.get().len() as u64;
        self.counts.heads_heard.fetch_add(heard, Relaxed);
        self.counts
            .heads_held
            .store(self.heads.len() as u64, Relaxed);
        Ok(())
    }

    /// Keeps a request that `from` is answering, unless the entry says that another data server owns the connection. A
    /// connection without an entry is accepted: it may get one when this node is in front.
    fn keep(
        &self,
        from: Ipv4Addr,
        head: &Head,
        request: &AnsweredRequest,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<()> {
        let key = heads::key(&head.key);
        let is_its = |tcb: &Tcb| is_at_door(tcb) && slots.get(&tcb.owner) == Some(&from);
        if !self.orphans.tcb(&key)?.as_ref().is_none_or(is_its) {
            return Ok(());
        }
        let pool = self.orphans.pool_with_id(request.pool)?;
        let mut kept = KeptRequest {
            request_seq: request.seq,
            response_start: head.start,
            bytes: request.text.len() as u16, // a message holds it
            pool: pool.unwrap_or(NO_POOL as u16), // an index is less
            ..KeptRequest::default()
        };
        if let Some(text) = kept.text.get_mut(..request.text.len()) {
            text.copy_from_slice(&request.text);
            self.orphans.keep(&key, &kept)?;
            self.counts.requests_heard.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// Does what is due, and returns the messages to send.
    pub fn work(&mut self, epoch: Instant, slots: &HashMap<u16, Ipv4Addr>) -> Vec<Outgoing> {
        let now = Moment::after_epoch(epoch.elapsed());
        self.work_on_handovers(now, slots);
        while let Some(action) = self.resumes.poll(now) {
            match self.act(now, action, slots) {
                Ok(message) => self.outgoing.extend(message),
                Err(error) => warn!("{error:#}"),
            }
        }
        std::mem::take(&mut self.outgoing)
    }

    fn act(
        &mut self,
        now: Moment,
        action: Action<ResponseId, u16>,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<Option<Outgoing>> {
        match action {
            Action::Ask {
                key,
                server,
                number,
                known,
            } => return self.order(now, key, number, known, slots.get(&server)),
            Action::Take { key, from, server } => {
                let change = change(key, from, server, TCB_RESUMING, TCB_ADOPTING);
                match self.orphans.change(change)? {
                    Some(tcb) => self.segments.probe(&known(&key, &tcb))?,
                    // The connection was closed, or its request came again and is answered elsewhere.
                    None => self.resumes.forget(now, key),
                }
            }
            Action::Probe { key } => match self.entry(&key)? {
                Some(tcb) => self.segments.probe(&known(&key, &tcb))?,
                None => self.resumes.forget(now, key),
            },
            Action::Begun { key, server } => {
                self.counts.resumed.fetch_add(1, Relaxed);
                self.orphans
                    .change(change(key, server, server, 0, TCB_RESUMING))?;
                debug!(client = %key.client, "a response goes on");
            }
            Action::CallLast { server } => self.call_last(server)?,
            Action::Leave { .. } => {
                self.counts.complete.fetch_add(1, Relaxed);
            }
            Action::Reset { key, from, why } => {
                if let Some(tcb) = self.entry(&key)?
                    && tcb.owner == from
                {
                    self.counts.note_refused(why);
                    info!(client = %key.client, ?why, "no data server can continue the response: connection is reset");
                    self.reset(&key.key(), &tcb)?;
                }
            }
        }
        Ok(None)
    }

    fn order(
        &mut self,
        now: Moment,
        which: ResponseId,
        number: u64,
        response: Response,
        server: Option<&Ipv4Addr>,
    ) -> Result<Option<Outgoing>> {
        let key = which.key();
        let (Some(tcb), Some(server)) = (self.entry(&which)?, server) else {
            self.resumes.forget(now, which);
            return Ok(None);
        };
        let Some(kept) = self.kept(&key, &tcb)? else {
            // The request is no longer kept: those of other connections have pushed it out of the map.
            self.resumes
                .handle_ready(now, number, Outcome::Unreachable, Response::default());
            return Ok(None);
        };
        let told = || self.head(&key, &kept).map(|head| head.digest);
        let known = Response {
            digest: response.digest.or_else(told),
            ..response
        };
        let order = which.order(number, &tcb, &kept, known)?;
        Ok(Some(Outgoing::bare(*server, order)))
    }

    /// Returns the current request of this entry if its response can go on elsewhere. For that the request must be
    /// kept, and either nothing of the response is acknowledged or its head is known. `None` also if the request is
    /// known to have been sent in the middle of the previous response.
    pub(super) fn resumable(&self, key: &TcbKey, tcb: &Tcb) -> Result<Option<KeptRequest>> {
        let Some(request) = self.kept(key, tcb)? else {
            return Ok(None);
        };
        let head = self.head(key, &request);
        self.count_head(head);
        let has_begun = tcb.last_ack != request.response_start;
        let is_known = !has_begun || head.is_some();
        let is_next = heads::name(key)
            .is_none_or(|name| !self.heads.is_under_way(&name, request.response_start));
        Ok((is_known && is_next).then_some(request))
    }

    /// Returns how the response to this request began, if its data server has told it.
    pub(super) fn head(&self, key: &TcbKey, kept: &KeptRequest) -> Option<Head> {
        self.heads.get(&heads::name(key)?, kept.response_start)
    }

    fn count_head(&self, head: Option<Head>) {
        let count = match head {
            Some(head) if head.digest.unseen() == 0 => &self.counts.head_known,
            Some(_) => &self.counts.head_partial,
            None => &self.counts.head_unknown,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Returns the living members of the pool. Which of them comes first depends on `turn`, so that the responses are
    /// spread over all members.
    pub(super) fn servers(
        &self,
        pool: u16,
        turn: usize,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<Vec<u16>> {
        let pool = self.orphans.pool(pool)?;
        let mut servers: Vec<u16> = slots
            .keys()
            .copied()
            .filter(|slot| pool.has(*slot) && !self.dead.contains(slot))
            .collect();
        servers.sort_unstable();
        if !servers.is_empty() {
            let first = turn % servers.len();
            servers.rotate_left(first);
        }
        Ok(servers)
    }

    /// Returns the entry's current request, if it is kept.
    pub(super) fn kept(&self, key: &TcbKey, tcb: &Tcb) -> Result<Option<KeptRequest>> {
        Ok(self.orphans.kept(key)?.filter(|kept| is_current(kept, tcb)))
    }

    pub(super) fn entry(&self, which: &ResponseId) -> Result<Option<Tcb>> {
        let tcb = self.orphans.tcb(&which.key())?;
        Ok(tcb.filter(|tcb| tcb.request_seq == which.request_seq))
    }

    /// Writes the request's sequence number into the entry. Returns false if the entry has changed meanwhile and was
    /// left as it is.
    pub(super) fn names(&self, which: ResponseId, tcb: &Tcb) -> Result<bool> {
        let named = change(which, tcb.owner, tcb.owner, 0, 0);
        Ok(self.orphans.change(named)?.is_some())
    }

    pub(super) fn reset(&self, key: &TcbKey, tcb: &Tcb) -> Result<()> {
        self.segments
            .reset(&known(&ResponseId::of(key, tcb), tcb))?;
        Ok(self.orphans.forget(key)?)
    }
}

/// Whether the owner judges and counts the connection's requests (`TCB_AT_DOOR`).
pub(super) fn is_at_door(tcb: &Tcb) -> bool {
    u32::from(tcb.state) & TCB_AT_DOOR != 0
}

/// Returns the pool whose members may answer the entry's current request. The entry itself names only the pool of the
/// first request.
pub(super) fn pool_of(tcb: &Tcb, kept: Option<&KeptRequest>) -> u16 {
    let told = kept.map(|kept| kept.pool);
    told.filter(|pool| u32::from(*pool) != NO_POOL)
        .unwrap_or(tcb.pool)
}

/// Whether a kept request is the entry's current one, by the same rule as `is_current()` in
/// `bpf/connection_server/orphans/keep.h`.
fn is_current(kept: &KeptRequest, tcb: &Tcb) -> bool {
    let end = kept.request_seq.wrapping_add(kept.bytes.into());
    let come = tcb.last_ack.wrapping_sub(kept.response_start);
    is_at_door(tcb) && end == tcb.last_seq && come.cast_signed() >= 0
}

pub(super) fn known(which: &ResponseId, tcb: &Tcb) -> Known {
    Known {
        client: which.client,
        cluster: which.cluster,
        last_seq: tcb.last_seq,
        last_ack: tcb.last_ack,
    }
}

pub(super) fn change(which: ResponseId, owner: u16, next: u16, set: u32, clear: u32) -> Change {
    debug_assert!(u32::from(next) != NO_DATA_SERVER);
    Change {
        key: which.key(),
        request_seq: which.request_seq,
        owner,
        next,
        set: set as u8, // bits that C keeps in a byte
        clear: clear as u8,
        ..Change::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kept request of 100 bytes at 5000, whose response begins at 900. The entries of the tests name another
    /// `request_seq`.
    const KEPT: KeptRequest = KeptRequest {
        request_seq: 5000,
        response_start: 900,
        bytes: 100,
        pool: 7,
        reserved: 0,
        text: [0; 1360],
    };

    fn entry(last_seq: u32, last_ack: u32) -> Tcb {
        Tcb {
            request_seq: 1,
            last_seq,
            last_ack,
            pool: 3,
            state: TCB_AT_DOOR as u8,
            ..Tcb::default()
        }
    }

    #[test]
    fn what_an_owner_told_is_current_if_nothing_was_sent_behind_it() {
        for (last_seq, last_ack, is_its) in [
            (5100, 900, true),
            (5100, 901, true),
            (5100, 899, false),
            (5101, 901, false),
            (5099, 901, false),
        ] {
            let found = is_current(&KEPT, &entry(last_seq, last_ack));
            assert_eq!(found, is_its, "{last_seq} {last_ack}");
        }
    }

    #[test]
    fn the_pool_of_the_request_is_what_its_owner_told() {
        let unknown = KeptRequest {
            pool: NO_POOL as u16,
            ..KEPT
        };
        for (kept, pool) in [(Some(&KEPT), 7), (Some(&unknown), 3), (None, 3)] {
            assert_eq!(pool_of(&entry(0, 0), kept), pool, "{kept:?}");
        }
    }
}
