//! The connection server's part of a drain: once a second it looks for responses under way at data servers that drain,
//! and has each go on from another data server. `baton_core::mid_response_handover` decides the steps.

use std::{
    collections::HashMap, net::Ipv4Addr, num::NonZeroU64, sync::atomic::Ordering::Relaxed,
    time::Instant,
};

use anyhow::Result;
use baton_abi::{TCB_AT_DOOR, Tcb, TcbKey};
use baton_core::{Moment, mid_response_handover::Action, resume::Known as Response};
use baton_dataplane::{Moving as Between, Step};
use baton_wire::{Flow, HeadDigest, Message, Outcome, Progress, Resume, ShortAddress, YieldAnswer};
use tracing::{debug, warn};

use super::{
    Outgoing,
    response_id::{ResponseId, ends},
    walker::{Walker, pool_of},
};
use crate::data_server::empty_ack::ack;

/// The size of the Ethernet header in front of a frame's packet.
pub(super) const ETHERNET_BYTES: usize = 14;

impl Walker {
    /// Finds the responses that are under way at a data server that drains, and begins to move them.
    pub(super) fn look_for_busy(
        &mut self,
        now: Moment,
        slot: u16,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<()> {
        let found = self.orphans.find_flows(slot)?;
        for (turn, (key, tcb)) in found.into_iter().enumerate() {
            if u32::from(tcb.state) != TCB_AT_DOOR {
                continue;
            }
            let Some(kept) = self.kept(&key, &tcb)? else {
                continue;
            };
            let which = ResponseId {
                request_seq: kept.request_seq,
                ..ResponseId::of(&key, &tcb)
            };
            if !self.handovers.would_take(now, &which) {
                continue;
            }
            let servers = self.servers(pool_of(&tcb, Some(&kept)), turn, slots)?;
            if servers.is_empty()
                || kept.response_start == tcb.last_ack
                || !self.names(which, &tcb)?
            {
                continue;
            }
            // The content may have changed since, so only the head that the owner told when the response began counts.
            let began = self.head(&key, &kept);
            let moves = &mut self.handovers;
            match began.filter(|head| head.digest.unseen() == 0) {
                Some(head) => {
                    let known = Response {
                        digest: Some(head.digest),
                        length: None,
                    };
                    moves.handle_busy(now, which, slot, servers, known);
                }
                None => {
                    self.counts.stayed_unknown.fetch_add(1, Relaxed);
                    moves.handle_unknown(now, which);
                }
            }
        }
        Ok(())
    }

    /// Ends the moves that an earlier process of this daemon began: nobody else would. The last owner has the
    /// connection, or says where it went.
    pub(super) fn end_forgotten_moves(&self, slots: &HashMap<u16, Ipv4Addr>) -> Result<()> {
        for slot in slots.keys().filter(|slot| !self.dead.contains(slot)) {
            for (key, tcb) in self.orphans.find_flows(*slot)? {
                let which = ResponseId::of(&key, &tcb);
                if tcb.previous == *slot && tcb.is_moving() && !self.handovers.holds(&which) {
                    let moved = between(&which, tcb.previous, tcb.owner);
                    self.orphans.step(moved, Step::Back)?;
                }
            }
        }
        Ok(())
    }

    /// Handles a data server's answer to YIELD, about a connection that it was to let go or to keep.
    pub(super) fn handle_yielded(
        &mut self,
        epoch: Instant,
        flow: Flow,
        answer: YieldAnswer,
    ) -> Result<()> {
        let now = Moment::after_epoch(epoch.elapsed());
        if let Some(ends) = ends(flow)
            && let key = TcbKey::of(ends.client, ends.cluster)
            && let Some(tcb) = self.orphans.tcb(&key)?
        {
            let which = ResponseId::of(&key, &tcb);
            self.handovers.handle_answer(now, which, answer);
        }
        Ok(())
    }

    /// Does what is due.
    pub(super) fn work_on_handovers(&mut self, now: Moment, slots: &HashMap<u16, Ipv4Addr>) {
        while let Some(action) = self.handovers.poll(now) {
            match self.move_on(now, action, slots) {
                Ok(message) => self.outgoing.extend(message),
                Err(error) => warn!("{error:#}"),
            }
        }
    }

    fn move_on(
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
            } => return self.order_move(now, key, number, known, slots.get(&server)),
            Action::Cancel {
                key,
                server,
                order,
                number,
            } => {
                let Some(server) = slots.get(&server) else {
                    return Ok(None);
                };
                // The agent recognises a cancellation by its empty request.
                let progress = Progress {
                    digest: NonZeroU64::new(order).map(HeadDigest::whole),
                    ..Progress::default()
                };
                let order = Resume::new(key.flow()?, number, progress, Vec::new())?;
                return Ok(Some(Outgoing::bare(*server, Message::Resume(order))));
            }
            Action::Begin { key, from, server } => {
                self.counts.moves.fetch_add(1, Relaxed);
                if (self
                    .orphans
                    .step(between(&key, from, server), Step::Begin)?)
                .is_none()
                {
                    self.handovers.forget(now, key);
                }
            }
            Action::Yield { key, from, server } => {
                return self.ask_to_yield(now, key, from, server, slots);
            }
            Action::Back { key, from, server } => {
                self.orphans.step(between(&key, from, server), Step::Back)?;
            }
            Action::Begun { key, from, server } => {
                self.counts.moved.fetch_add(1, Relaxed);
                self.orphans.step(between(&key, from, server), Step::Done)?;
                debug!(client = %key.client, "a response goes on elsewhere");
            }
            Action::Orphan { key, from, server } => {
                self.counts.move_orphans.fetch_add(1, Relaxed);
                let step = self
                    .orphans
                    .step(between(&key, from, server), Step::Orphaned)?;
                if let Some(tcb) = step {
                    let kept = self.kept(&key.key(), &tcb)?;
                    let mut servers = self.servers(pool_of(&tcb, kept.as_ref()), 0, slots)?;
                    // The data server that has the rest may have the connection by now, so it is asked first.
                    if !self.dead.contains(&server) {
                        servers.retain(|other| *other != server);
                        servers.insert(0, server);
                    }
                    self.resumes.handle_orphan(now, key, server, servers);
                }
            }
            Action::Stays { key, why } => {
                self.counts.note_stays(why);
                debug!(client = %key.client, ?why, "a response stays where it is");
            }
        }
        Ok(None)
    }

    /// Prepares YIELD to the owner, around an empty ACK in the client's name.
    fn ask_to_yield(
        &mut self,
        now: Moment,
        which: ResponseId,
        from: u16,
        server: Option<u16>,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<Option<Outgoing>> {
        let entry = self.entry(&which)?;
        // The connection was closed, or the next request has come. That goes to whichever of the two data servers has
        // the connection.
        let Some(tcb) = entry.filter(Tcb::is_moving) else {
            self.handovers.forget(now, which);
            return Ok(None);
        };
        if !self.handovers.holds(&which) {
            return Ok(None);
        }
        let next = match server {
            None => None,
            Some(server) => match slots.get(&server) {
                Some(address) => Some(ShortAddress::try_from(std::net::IpAddr::from(*address))?),
                None => return Ok(None),
            },
        };
        let frame = ack(&which.key(), (tcb.last_seq, tcb.last_ack), [0; 6]);
        let (Some(owner), Some(frame)) = (slots.get(&from), frame) else {
            return Ok(None);
        };
        Ok(Some(Outgoing {
            to: *owner,
            message: Message::Yield {
                flow: which.flow()?,
                next,
            },
            packet: frame.get(ETHERNET_BYTES..).unwrap_or_default().to_vec(),
        }))
    }

    fn order_move(
        &mut self,
        now: Moment,
        which: ResponseId,
        number: u64,
        response: Response,
        server: Option<&Ipv4Addr>,
    ) -> Result<Option<Outgoing>> {
        let (Some(tcb), Some(server)) = (self.entry(&which)?, server) else {
            self.handovers.forget(now, which);
            return Ok(None);
        };
        let Some(kept) = self.kept(&which.key(), &tcb)? else {
            // The request is no longer kept: those of other connections have pushed it out of the map.
            let nothing = Response::default();
            (self.handovers).handle_ready(now, number, Outcome::Unreachable, nothing);
            return Ok(None);
        };
        let order = which.order(number, &tcb, &kept, response)?;
        Ok(Some(Outgoing::bare(*server, order)))
    }
}

fn between(which: &ResponseId, from: u16, to: u16) -> Between {
    Between {
        key: which.key(),
        request_seq: which.request_seq,
        from,
        to,
    }
}
