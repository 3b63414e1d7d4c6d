//! What a data server does with a message about a connection: a model of bpf/ds, whose programs need sockets of a real
//! kernel and are not run here.

use baton_wire::{Flow, Keep, Message, ShortAddress, TcbPart};

use crate::{
    packet::{Packet, RST},
    socket::{Response, Socket, Taken, is_after},
};

/// How far behind a packet of the same connection may be.
const BEHIND_SEQ: u32 = 1 << 20;
const BEHIND_ACK: u32 = 1 << 28;
const AHEAD_SEQ: u32 = 1 << 25;

/// `enum lccp_begins`.
const BEGINS_JUMP: u8 = 1;
const BEGINS_ONLY_CONFIRM: u8 = 2;
const BEGINS_AGAIN: u8 = 3;
const BEGINS_COME: u8 = 4;

/// `enum lccp_end`.
const END_TOLD: u32 = 1;

/// One connection at one data server.
#[derive(Clone, Debug, Default)]
pub struct Held {
    pub socket: Option<Socket>,
    /// The first byte that was not this data server's anymore, when it gave the connection away.
    pub given: Option<u32>,
    /// Where the last request ends that went on behind its packet.
    told: Option<Told>,
}

/// What the connection server has said of a request.
#[derive(Clone, Copy, Debug)]
struct Told {
    begin: u32,
    /// None: it ends with its last chunk.
    end: Option<u32>,
}

/// What the data server does.
#[derive(Debug, PartialEq)]
pub enum Does {
    Nothing,
    /// Its TCP has had the packet.
    Delivered(Taken),
    /// The same, and it tells the connection server that asked.
    DeliveredAndSays(Taken, Message),
    /// The message goes back to who asked, with the packet.
    Says(Message),
    /// On to another data server.
    Passes(ShortAddress, Message),
    /// On to the next data server of the ring.
    AsksNext(Message),
}

impl Held {
    /// A client's packet without a message around it.
    pub fn plain(&mut self, flow: Flow, packet: &Packet) -> Does {
        match self.deliver(packet) {
            Some(taken) => Does::Delivered(taken),
            None if packet.has(RST) => Does::Nothing,
            None => Does::Says(Message::None {
                flow,
                attempt: 0,
                is_plain: true,
            }),
        }
    }

    pub fn hear(&mut self, message: &Message, packet: &Packet, servers: u8) -> Does {
        match message.clone() {
            Message::Adopt { tcb, .. } => {
                self.note_end(tcb.resume, packet);
                self.adopt(packet)
            }
            Message::Forward {
                flow,
                next,
                attempt,
                end,
                is_behind,
            } => {
                if self.socket.is_some() {
                    if is_behind {
                        return Does::Nothing;
                    }
                    self.note_end(end, packet);
                }
                match (self.deliver(packet), next) {
                    (Some(taken), _) => Does::Delivered(taken),
                    (None, Some(next)) => Does::Passes(
                        next,
                        Message::Forward {
                            flow,
                            next: None,
                            attempt: 1,
                            end,
                            is_behind: false,
                        },
                    ),
                    (None, None) if attempt == 0 => Does::Says(Message::None {
                        flow,
                        attempt: 0,
                        is_plain: false,
                    }),
                    (None, None) => Does::Nothing,
                }
            }
            Message::Elsewhere { flow, tcb, next } => self.let_go(flow, tcb, next, packet),
            Message::Begins { flow, how } => self.begins(flow, how, packet),
            Message::Claim {
                flow,
                asker,
                attempt,
            } => {
                if self.fits(packet) {
                    let next = self.socket.as_ref().map(|socket| socket.next);
                    let is_new = next.is_some_and(|next| is_after(packet.end(), next));
                    if is_new && !packet.payload.is_empty() {
                        // Nobody has judged it.
                        let tcb = crate::world::linux_tcb();
                        return Does::Says(Message::Moved {
                            flow,
                            tcb,
                            next: None,
                        });
                    }
                    let taken = self.deliver(packet).unwrap_or(Taken::Nothing);
                    if packet.has(RST) {
                        return Does::Delivered(taken);
                    }
                    let tcb = crate::world::linux_tcb();
                    return Does::DeliveredAndSays(
                        taken,
                        Message::Moved {
                            flow,
                            tcb,
                            next: None,
                        },
                    );
                }
                let attempt = attempt + 1;
                if attempt < servers {
                    return Does::AsksNext(Message::Claim {
                        flow,
                        asker,
                        attempt,
                    });
                }
                if packet.has(RST) {
                    return Does::Nothing;
                }
                Does::Says(Message::None {
                    flow,
                    attempt,
                    is_plain: false,
                })
            }
            other => panic!("a data server is sent {other:?}"),
        }
    }

    fn deliver(&mut self, packet: &Packet) -> Option<Taken> {
        let socket = self.socket.as_mut()?;
        socket.note(packet);
        let taken = socket.take(packet);
        if taken == Taken::Reset {
            self.socket = None;
        }
        Some(taken)
    }

    fn note_end(&mut self, end: u64, packet: &Packet) {
        let how = (end >> 32) as u32;
        if how != 0 {
            self.told = Some(Told {
                begin: packet.seq,
                end: (how == END_TOLD).then_some(end as u32),
            });
        }
    }

    fn adopt(&mut self, packet: &Packet) -> Does {
        if let Some(socket) = &mut self.socket {
            let ahead = packet.seq.wrapping_sub(socket.next).wrapping_sub(1);
            if ahead < BEHIND_SEQ && socket.write.wrapping_sub(packet.ack) < BEHIND_ACK {
                return Does::Nothing;
            }
            let seq = socket.begin.wrapping_sub(packet.seq);
            let ack = socket.write.wrapping_sub(packet.ack);
            if seq == 0 || (seq < BEHIND_SEQ && ack < BEHIND_ACK) {
                return Does::Delivered(socket.take(packet));
            }
        } else if self
            .given
            .is_some_and(|given| given.wrapping_sub(packet.seq).wrapping_sub(1) < BEHIND_SEQ)
        {
            return Does::Nothing;
        }
        let mut socket = Socket::adopted(packet);
        let taken = socket.take(packet);
        self.socket = Some(socket);
        Does::Delivered(taken)
    }

    /// ELSEWHERE: the connection goes if all is quiet, with nothing under way.
    fn let_go(&mut self, flow: Flow, tcb: TcbPart, next: ShortAddress, packet: &Packet) -> Does {
        let passes = Does::Passes(
            next,
            Message::Adopt {
                flow,
                tcb: TcbPart { attempt: 0, ..tcb },
                asker: None,
            },
        );
        let Some(socket) = &self.socket else {
            let is_of = |given| packet.seq.wrapping_sub(given) < BEHIND_SEQ;
            return if self.given.is_some_and(is_of) {
                passes
            } else {
                Does::Says(Message::None {
                    flow,
                    attempt: 0,
                    is_plain: false,
                })
            };
        };
        let withheld = |keep| Does::Says(Message::Withheld { flow, tcb, keep });
        if socket.is(Response::Tunnel) {
            let keep = not_quiet(socket, packet).unwrap_or(Keep::Unfinished);
            let taken = self.deliver(packet).unwrap_or(Taken::Nothing);
            return Does::DeliveredAndSays(taken, Message::Keep { flow, tcb, keep });
        }
        if let Some(why) = not_quiet(socket, packet) {
            return withheld(why);
        }
        if socket.is(Response::Unknown) {
            return withheld(Keep::Unknown);
        }
        if !socket.is(Response::Complete) || socket.responses() != tcb.attempt {
            return withheld(Keep::Unfinished);
        }
        self.given = Some(packet.seq);
        self.socket = None;
        passes
    }

    fn begins(&mut self, flow: Flow, how: u8, packet: &Packet) -> Does {
        let Some(socket) = &self.socket else {
            return Does::Says(Message::None {
                flow,
                attempt: 0,
                is_plain: false,
            });
        };
        let is_next = packet.seq == socket.next;
        let is_old = !is_after(packet.end(), socket.next);
        let begun = |keep, at| Message::Begun {
            flow,
            keep,
            at,
            responses: socket.responses(),
        };
        let says = |keep| Does::Says(begun(keep, packet.seq));
        if how == BEGINS_COME {
            return Does::Says(begun(Keep::Come, socket.next));
        }
        let answers_all = socket
            .followed
            .as_ref()
            .is_some_and(|followed| followed.responses == followed.requests);
        let more = begun(Keep::More, packet.seq);
        let delivers = if socket.is_closing {
            Some(false)
        } else if how == BEGINS_AGAIN && !is_old {
            return Does::Says(begun(Keep::Missing, socket.next));
        } else if how == BEGINS_ONLY_CONFIRM {
            Some(is_next)
        } else if is_old {
            Some(false)
        } else if is_after(packet.seq, socket.next) {
            return Does::Nothing;
        } else if socket.is(Response::Tunnel) {
            return says(Keep::Tunnel);
        } else if socket.is_unanswered() {
            let come = |told: &Told| socket.next.wrapping_sub(told.begin);
            match self.told {
                Some(told) if told.end.is_none() && come(&told) < 1 << 31 => {
                    return says(Keep::Unknown);
                }
                Some(told)
                    if told
                        .end
                        .is_some_and(|end| come(&told) < end.wrapping_sub(told.begin)) =>
                {
                    if told.end.is_some_and(|end| is_after(packet.end(), end)) {
                        return says(Keep::Unknown);
                    }
                    Some(how == BEGINS_JUMP && is_next)
                }
                _ => return Does::Nothing,
            }
        } else if socket.is(Response::Unknown) {
            return says(Keep::Unknown);
        } else {
            None
        };
        match delivers {
            Some(confirms) => {
                let taken = self.deliver(packet).unwrap_or(Taken::Nothing);
                if confirms {
                    Does::DeliveredAndSays(taken, more)
                } else {
                    Does::Delivered(taken)
                }
            }
            None if not_quiet(socket, packet).is_some() || !socket.is(Response::Complete) => {
                Does::Nothing
            }
            None if answers_all => says(Keep::Begins),
            None => says(Keep::Unknown),
        }
    }

    fn fits(&self, packet: &Packet) -> bool {
        self.socket.as_ref().is_some_and(|socket| {
            packet
                .seq
                .wrapping_sub(socket.next)
                .wrapping_add(BEHIND_SEQ)
                < BEHIND_SEQ + AHEAD_SEQ
                && socket.write.wrapping_sub(packet.ack) < BEHIND_ACK
        })
    }
}

/// Why a connection cannot go at this packet, whatever its responses are like.
fn not_quiet(socket: &Socket, packet: &Packet) -> Option<Keep> {
    if socket.is_closing {
        Some(Keep::State)
    } else if packet.seq != socket.next {
        Some(Keep::Sequence)
    } else if packet.ack != socket.write {
        Some(Keep::Unsent)
    } else {
        None
    }
}
