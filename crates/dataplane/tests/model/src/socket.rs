//! A connection at a data server: its TCP, and what is known of its responses.

use std::ops::Range;

use crate::{
    http,
    packet::{FIN, Packet, RST},
};

/// More than this ahead a packet is out of the receive window.
const WINDOW: u32 = 1 << 16;

/// How far the response under way is, as the program at egress sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    Complete,
    /// So many bytes are still to be written.
    Body(u32),
    /// Nobody can say where it ends.
    Unknown,
    /// Another protocol.
    Tunnel,
}

/// What is known of responses, once one has begun.
#[derive(Clone, Debug)]
pub struct Followed {
    pub state: Response,
    /// Behind the last byte of the client, and what that was when the last response began.
    pub asked: u32,
    pub answered: u32,
    /// Modulo 256: what looked like requests, and responses.
    pub requests: u8,
    pub responses: u8,
}

#[derive(Clone, Debug)]
pub struct Socket {
    /// The first byte that it has taken, and the next that it expects.
    pub begin: u32,
    pub next: u32,
    /// What the server has read.
    pub text: Vec<u8>,
    /// What came before its turn.
    early: Vec<(u32, Vec<u8>)>,
    /// The next byte that the server writes.
    pub write: u32,
    /// The client has said all.
    pub is_closing: bool,
    pub followed: Option<Followed>,
    /// How many requests have a response, or the beginning of one.
    pub answered: usize,
}

/// What became of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// These bytes of the client's stream are the server's from now on.
    Bytes(Range<u32>),
    Nothing,
    /// It ended the connection.
    Reset,
}

impl Socket {
    /// Of an adopted packet.
    pub fn adopted(packet: &Packet) -> Self {
        Self {
            begin: packet.seq,
            next: packet.seq,
            text: Vec::new(),
            early: Vec::new(),
            write: packet.ack,
            is_closing: false,
            followed: None,
            answered: 0,
        }
    }

    /// What TCP does with a packet.
    pub fn take(&mut self, packet: &Packet) -> Taken {
        if packet.has(RST) {
            return if packet.seq == self.next {
                Taken::Reset
            } else {
                Taken::Nothing
            };
        }
        // It acknowledges what was never sent.
        if is_after(packet.ack, self.write) || self.is_closing {
            return Taken::Nothing;
        }
        let (before, end) = (self.next, packet.end());
        if packet.seq.wrapping_sub(before) >= WINDOW && !is_after(before, packet.seq) {
            return Taken::Nothing;
        }
        let mut taken = Taken::Nothing;
        if is_after(end, before) && !packet.payload.is_empty() {
            let begin = if is_after(before, packet.seq) {
                before
            } else {
                packet.seq
            };
            taken = Taken::Bytes(begin..end);
            self.early.push((packet.seq, packet.payload.clone()));
            self.put_together();
        }
        if packet.has(FIN) && end == self.next {
            self.is_closing = true;
            self.next = self.next.wrapping_add(1);
        }
        taken
    }

    fn put_together(&mut self) {
        while let Some(at) = self
            .early
            .iter()
            .position(|(seq, _)| !is_after(*seq, self.next))
        {
            let (seq, bytes) = self.early.swap_remove(at);
            let known = self.next.wrapping_sub(seq) as usize;
            if let Some(new) = bytes.get(known..) {
                self.text.extend(new);
                self.next = self.next.wrapping_add(new.len() as u32);
            }
        }
    }

    /// What the program at ingress notes of a packet that it lets pass.
    pub fn note(&mut self, packet: &Packet) {
        let Some(followed) = &mut self.followed else {
            return;
        };
        if packet.payload.is_empty() || !is_after(packet.end(), followed.asked) {
            return;
        }
        let begins = packet.payload.get(..3);
        let looks = begins.is_some_and(|letters| letters.iter().all(u8::is_ascii_uppercase));
        followed.requests = followed.requests.wrapping_add(looks.into());
        followed.asked = packet.end();
    }

    /// The request that the server answers next, if its head has come.
    pub fn to_answer(&self) -> Option<http::Request> {
        let request = http::requests(&self.text).into_iter().nth(self.answered)?;
        request.head.is_some().then_some(request)
    }

    /// Begins to write the next response, which is so many bytes long; it ends later if some are `left`.
    pub fn respond(&mut self, bytes: u32, left: u32, state: Option<Response>) {
        let asked = self.next.wrapping_sub(self.is_closing.into());
        let followed = self.followed.get_or_insert(Followed {
            state: Response::Complete,
            asked,
            answered: asked.wrapping_sub(1),
            requests: 1,
            responses: 0,
        });
        followed.answered = followed.asked;
        followed.responses = followed.responses.wrapping_add(1);
        followed.state = state.unwrap_or(match left {
            0 => Response::Complete,
            left => Response::Body(left),
        });
        self.answered += 1;
        self.write = self.write.wrapping_add(bytes - left);
    }

    /// Writes the rest of the response that is under way. False if none is.
    pub fn go_on(&mut self) -> bool {
        let Some(Followed { state, .. }) = &mut self.followed else {
            return false;
        };
        let Response::Body(left) = *state else {
            return false;
        };
        *state = Response::Complete;
        self.write = self.write.wrapping_add(left);
        true
    }

    pub fn is_unanswered(&self) -> bool {
        self.followed
            .as_ref()
            .is_none_or(|followed| followed.asked != followed.answered)
    }

    pub fn is(&self, state: Response) -> bool {
        self.followed
            .as_ref()
            .is_some_and(|followed| followed.state == state)
    }

    pub fn responses(&self) -> u8 {
        self.followed
            .as_ref()
            .map_or(0, |followed| followed.responses)
    }
}

/// Whether one sequence number is behind another in the stream.
pub fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}
