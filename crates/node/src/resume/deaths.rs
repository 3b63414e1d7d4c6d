//! What becomes of the connections of a data server that died.
//!
//! Connections at rest need nothing: their next requests go elsewhere. Every other connection is continued by another
//! data server, or its client is told by a RST. But an entry may be out of date: the dead data server may have handed
//! the connection over, and its MOVED may be lost. So the other data servers are asked first (CLAIM). The one that has
//! the connection answers MOVED, and the program notes that in the entry. If an entry still names the dead data server
//! a moment later, the connection really was there.

use std::{collections::HashMap, net::Ipv4Addr, sync::atomic::Ordering::Relaxed};

use anyhow::Result;
use baton_abi::{KeptRequest, TCB_ADOPTING, TCB_FIN, TCB_WAITING, Tcb, TcbKey};
use baton_core::Moment;
use baton_dataplane::Tick;
use baton_net::Connections;
use baton_wire::{Message, ShortAddress};
use tracing::info;

use super::{
    Outgoing,
    mid_response::ETHERNET_BYTES,
    response_id::ResponseId,
    walker::{Walker, change, pool_of},
};
use crate::data_server::empty_ack::ack;

/// The attempt number that CLAIM gets here. It is so high that a data server which is asked asks no other one.
const ALONE: u8 = u8::MAX - 1;
/// Only connections heard within this many ticks, of a second each, are asked for; it is longer than any `dead_after`.
/// If the dead data server had handed over an older one, it would have said MOVED again for each later packet of the
/// client.
const LATELY: u32 = 32;
/// At most this many CLAIM messages are sent. Connections beyond that are not asked for.
const QUESTIONS: usize = 1 << 16;

impl Walker {
    /// Asks the other data servers for the connections of a dead one that are not at rest.
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
            let which = ResponseId::of(&key, &tcb);
            // A message of this node to itself would not arrive by its network card, so its own sockets are looked up.
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
                self.outgoing.push(Outgoing {
                    to: *to,
                    message: message.clone(),
                    packet: packet.to_vec(),
                });
            }
        }
        Ok(())
    }

    /// Decides what becomes of the connections that the dead data server still has and that are not at rest. Other data
    /// servers that have connections of it have answered by then.
    pub(super) fn handle_death(
        &mut self,
        now: Moment,
        slot: u16,
        slots: &HashMap<u16, Ipv4Addr>,
    ) -> Result<()> {
        self.resumes.handle_death(now, slot);
        self.handovers.handle_death(now, slot);
        if self.resumes.is_front() {
            self.look_after(now, slot, slots)?;
        }
        Ok(())
    }

    /// Returns the entries of the dead data server that are not at rest. Entries whose response is being moved are left
    /// out, because `mid_response` handles them: it is told of the death too, or learns from the connection's owner whether
    /// the response has come.
    fn left_by(&self, slot: u16) -> Result<Vec<(TcbKey, Tcb)>> {
        let mut left = self.orphans.find_flows(slot)?;
        left.retain(|(key, tcb)| {
            tcb.owner == slot && !self.handovers.holds(&ResponseId::of(key, tcb))
        });
        Ok(left)
    }

    /// Resumes the responses that can be resumed. The other clients get a RST, unless their request may come again or
    /// they have all of the response.
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
                    let which = ResponseId {
                        request_seq: request.request_seq,
                        ..ResponseId::of(&key, &tcb)
                    };
                    if self.names(which, &tcb)? {
                        let servers = self.servers(pool_of(&tcb, Some(&request)), turn, slots)?;
                        self.resumes.handle_orphan(now, which, slot, servers);
                        kept += 1;
                    }
                }
                // The request comes again and goes elsewhere then. If it does not, `call_last` resets the connection.
                _ if is_first(&tcb) => {}
                _ => {
                    // A client that has sent FIN most likely waits for nothing, so it is not counted.
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
            "a data server died while these connections were not at rest: {kept} of them can go on elsewhere"
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

    /// Resets the connections whose request nobody had answered and did not come again.
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

/// Whether the connection waits for the response to the request with which it went to its owner.
fn is_first(tcb: &Tcb) -> bool {
    const WAITS: u32 = TCB_ADOPTING | TCB_WAITING;
    u32::from(tcb.state) & WAITS == WAITS
}
