//! What becomes of the connections of a data server that died.
//!
//! Those at rest need nothing: their next requests go elsewhere. Of all others somebody is told, or takes over. But the entry may be
//! behind: the dead one may have handed a connection on, and its word have been lost. So the other data servers are asked first
//! (CLAIM), and whoever has a connection says MOVED, which the program notes. What is the dead one's still, a moment later, was.

use std::{collections::HashMap, net::Ipv4Addr, sync::atomic::Ordering::Relaxed};

use anyhow::Result;
use baton_abi::{KeptRequest, TCB_ADOPTING, TCB_FIN, TCB_WAITING, Tcb, TcbKey};
use baton_core::Moment;
use baton_dataplane::Tick;
use baton_net::Connections;
use baton_wire::{Message, ShortAddress};
use tracing::info;

use super::{
    moving::ETHERNET_BYTES,
    walker::{Walker, change, pool_of},
    which::Which,
};
use crate::data_server::idle_handover::ack;

/// A data server that is asked so late need not ask another one.
const ALONE: u8 = u8::MAX - 1;
/// Ticks, of a second each: longer than any `dead_after`. Had the dead one handed the connection on before, its client's packets would
/// have come to it since, and with each it says MOVED again.
const LATELY: u32 = 32;
/// So many messages at most: what is beyond is not asked for.
const QUESTIONS: usize = 1 << 16;

impl Walker {
    /// Asks the others who has the connections of a dead one that are not at rest.
    pub(super) fn ask_others(&mut self, slot: u16, slots: &HashMap<u16, Ipv4Addr>) -> Result<()> {
        if self.dead.insert(slot) {
            self.counts.deaths.fetch_add(1, Relaxed);
        }
        if !self.resumes.is_front() {
            return Ok(());
        }
        let others: Vec<Ipv4Addr> = (slots.iter())
            .filter(|(slot, address)| !self.dead.contains(slot) && **address != self.own)
            .map(|(_, address)| *address)
            .collect();
        let own =
            (slots.iter()).find_map(|(slot, address)| (*address == self.own).then_some(*slot));
        let asker = ShortAddress::try_from(std::net::IpAddr::from(self.own))?;
        let Tick(now) = Tick::now();
        let mut lately = self.left_by(slot)?;
        lately.retain(|(_, tcb)| now.wrapping_sub(tcb.seen) < LATELY);
        lately.truncate(QUESTIONS / others.len().max(1));
        for (key, tcb) in lately {
            let which = Which::of(&key, &tcb);
            // No message of this node to itself comes by its card.
            if let Some(own) = own
                && Connections::ends_here(which.client, which.cluster)?
            {
                self.orphans.change(change(which, slot, own, 0, 0))?;
                continue;
            }
            let Some(frame) = ack(&key, (tcb.last_seq, tcb.last_ack), [0; 6]) else {
                continue;
            };
            let message = Message::Claim {
                flow: which.flow()?,
                asker,
                attempt: ALONE,
                is_cut: true,
            };
            let packet = frame.get(ETHERNET_BYTES..).unwrap_or_default();
            for to in &others {
                (self.moving.parcels).push((*to, message.clone(), packet.to_vec()));
            }
        }
        Ok(())
    }

    /// Whoever has any of its connections has said so: looks after the others that are not at rest.
    pub(super) fn handle_death(
        &mut self,
        now: Moment,
        slot: u16,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<()> {
        self.resumes.handle_death(now, slot);
        self.moving.moves.handle_death(now, slot);
        if self.resumes.is_front() {
            self.look_after(now, slot, slots)?;
        }
        Ok(())
    }

    /// The entries of the dead that are not at rest. One whose response was moving is none of it: whoever sees to that knows of the
    /// death, or its owner says whether it has come.
    fn left_by(&self, slot: u16) -> Result<Vec<(TcbKey, Tcb)>> {
        let mut left = self.orphans.muster(slot)?;
        left.retain(|(key, tcb)| {
            tcb.owner == slot && !self.moving.moves.holds(&Which::of(key, tcb))
        });
        Ok(left)
    }

    /// What can be resumed is, of the others each is told.
    fn look_after(&mut self, now: Moment, slot: u16, slots: &HashMap<u16, Ipv4Addr>) -> Result<()> {
        let (mut all, mut kept) = (0, 0);
        for (turn, (key, tcb)) in self.left_by(slot)?.into_iter().enumerate() {
            let has_ended = u32::from(tcb.state) & TCB_FIN != 0;
            let request = self.resumable(&key, &tcb)?;
            if let Some(request) = &request
                && self.is_complete(&key, &tcb, request)
            {
                continue;
            }
            all += 1;
            match request {
                Some(request) if !has_ended => {
                    let which = Which {
                        request_seq: request.request_seq,
                        ..Which::of(&key, &tcb)
                    };
                    if self.names(which, &tcb)? {
                        let servers = self.servers(pool_of(&tcb, Some(&request)), turn, slots)?;
                        self.resumes.handle_orphan(now, which, slot, servers);
                        kept += 1;
                    }
                }
                // It comes again, and goes elsewhere then; or it does not, and its client is called last.
                _ if is_first(&tcb) => {}
                _ => {
                    // Who has closed waits for nothing, most likely.
                    if !has_ended {
                        self.counts.not_kept.fetch_add(1, Relaxed);
                    }
                    self.reset(&key, &tcb)?;
                }
            }
        }
        self.counts.orphans.fetch_add(all, Relaxed);
        info!(
            connections = all,
            "a data server died: of so many connections that were not at rest {kept} can go on elsewhere"
        );
        Ok(())
    }

    /// Whether the client has all of the response to this request, as far as its length is known.
    fn is_complete(&self, key: &TcbKey, tcb: &Tcb, request: &KeptRequest) -> bool {
        let length = self.head(key, request).and_then(|head| head.length);
        length.is_some_and(|length| {
            !request.text.starts_with(b"HEAD ")
                && tcb.last_ack.wrapping_sub(request.response_start) >= length.get()
        })
    }

    /// Requests that nobody had answered, and that did not come again.
    pub(super) fn call_last(&mut self, slot: u16) -> Result<()> {
        for (key, tcb) in self.left_by(slot)? {
            if self.kept(&key, &tcb)?.is_none() && u32::from(tcb.state) & TCB_WAITING != 0 {
                self.counts.not_kept.fetch_add(1, Relaxed);
                self.reset(&key, &tcb)?;
            }
        }
        Ok(())
    }
}

/// Whether it waits for the response to the request with which it went to its owner.
fn is_first(tcb: &Tcb) -> bool {
    const WAITS: u32 = TCB_ADOPTING | TCB_WAITING;
    u32::from(tcb.state) & WAITS == WAITS
}
