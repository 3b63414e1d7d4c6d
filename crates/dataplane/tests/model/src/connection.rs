//! One connection: what its client has said and heard, where it is, and who has had which of its requests.

use std::{net::SocketAddrV4, ops::Range};

use baton_wire::Flow;

use crate::{
    data_server::Held,
    http,
    packet::{ACK, FIN, PSH, Packet, RST, SYN},
    pool::SERVERS,
    script::Script,
    socket::Response,
    step::{Habits, What},
    world::letters,
};

/// What one segment may hold: the MSS less the timestamps.
const SEGMENT: usize = 1_348;
/// Bytes of a response.
const ANSWER: u32 = 100;

pub struct Connection {
    pub client: SocketAddrV4,
    pub flow: Flow,
    pub script: Script,
    habits: Habits,
    /// Sequence numbers of the first byte on each side.
    first: u32,
    first_answer: u32,
    /// How much the client has sent at least once, from the first byte on.
    sent_up_to: usize,
    /// How many bytes of responses it has got.
    heard: u32,
    /// Up to where it has been told by user space that its data has come: it does not send that again.
    acknowledged: usize,
    pub sent: Vec<Packet>,
    /// What anybody has acknowledged in its name.
    said: Vec<u32>,
    pub held: [Held; SERVERS],
    /// Whether each byte has always been the same, and nobody else has sent any.
    pub is_honest: bool,
    pub is_closed: bool,
    /// Whether its client has sent its end.
    has_said_all: bool,
    /// How often the first byte of each request was sent.
    tries: Vec<usize>,
    /// Which data servers have read that byte.
    readers: Vec<Vec<usize>>,
}

impl Connection {
    pub fn new(
        client: SocketAddrV4,
        flow: Flow,
        isn: u32,
        cookie: u32,
        script: &Script,
        habits: Habits,
    ) -> Self {
        Self {
            client,
            flow,
            script: script.clone(),
            habits,
            first: isn.wrapping_add(1),
            first_answer: cookie.wrapping_add(1),
            sent_up_to: 0,
            heard: 0,
            acknowledged: 0,
            sent: Vec::new(),
            said: Vec::new(),
            held: Default::default(),
            is_honest: true,
            is_closed: false,
            has_said_all: false,
            tries: vec![0; script.requests.len()],
            readers: vec![Vec::new(); script.requests.len()],
        }
    }

    fn seq(&self, offset: usize) -> u32 {
        self.first.wrapping_add(offset as u32)
    }

    /// Where in the client's stream a sequence number is. None: before it.
    pub fn offset(&self, seq: u32) -> Option<usize> {
        let offset = seq.wrapping_sub(self.first);
        (offset < 1 << 31).then_some(offset as usize)
    }

    pub fn packet(&self, range: Range<usize>, flags: u8) -> Packet {
        Packet {
            client: self.client,
            seq: self.seq(range.start),
            ack: self.first_answer.wrapping_add(self.heard),
            flags,
            payload: self.script.text[range].to_vec(),
        }
    }

    /// What the client sends next without any data.
    pub fn empty(&self, flags: u8) -> Packet {
        self.packet(self.sent_up_to..self.sent_up_to, flags)
    }

    /// Data as a step says; none if there is none.
    pub fn data(&self, what: What, a: usize, b: usize) -> Option<Packet> {
        let text = self.script.text.len();
        let at = self.sent_up_to;
        let rest = |at: usize| {
            self.script
                .at(at)
                .map(|index| self.script.requests[index].end)
        };
        let range = match what {
            What::Request => at..rest(at)?,
            What::Piece => at..at + 1 + a % 60,
            What::Across => at..rest(at)? + 1 + a % 120,
            What::Again if at > 0 => {
                let from = a % at;
                // Often exactly a request.
                if b.is_multiple_of(2) {
                    let request = &self.script.requests[self.script.at(from)?];
                    request.begin..request.end
                } else {
                    from..from + 1 + b / 2 % 200
                }
            }
            What::Ahead => {
                let from = at + 1 + a % 100;
                from..from + 1 + b % 60
            }
            _ => return None,
        };
        // Segments that the kernel has merged, now and then.
        let most = if b.is_multiple_of(32) {
            2 * SEGMENT
        } else {
            SEGMENT
        };
        let end = range
            .end
            .min(text)
            .min(range.start + most)
            .min(self.may_send());
        (range.start < end).then(|| self.packet(range.start..end, ACK | PSH))
    }

    /// How far in its stream the client may be: to the end of the first request that it has no whole answer to, if it
    /// waits for answers.
    fn may_send(&self) -> usize {
        if self.has_said_all {
            return self.sent_up_to;
        }
        let answers = (self.heard / ANSWER) as usize;
        match self.script.requests.get(answers) {
            Some(request) if !self.habits.pipelines => request.end,
            _ => self.script.text.len(),
        }
    }

    /// Other paths, as long as the right ones.
    pub fn alter(&mut self, packet: &mut Packet, how: usize) {
        let paths = [b"/a/", b"/b/", b"/c/"];
        let other = paths[how / 7 % 3];
        for at in 0..packet.payload.len().saturating_sub(2) {
            let here = &mut packet.payload[at..at + 3];
            if paths.iter().any(|path| here == *path) {
                self.is_honest &= here == other;
                here.copy_from_slice(other);
            }
        }
    }

    pub fn note_sent(&mut self, packet: &Packet) {
        if packet.has(ACK) {
            self.said.push(packet.ack);
        }
        let Some(begin) = self.offset(packet.seq) else {
            return;
        };
        let end = begin + packet.payload.len();
        self.has_said_all |= packet.has(FIN);
        self.note_try(packet);
        if begin <= self.sent_up_to && self.is_honest {
            self.sent_up_to = self.sent_up_to.max(end).min(self.script.text.len());
        }
        if !packet.payload.is_empty() {
            self.sent.push(packet.clone());
        }
    }

    pub fn note_acknowledged(&mut self, next: u32) {
        let come = self.offset(next).unwrap_or(0);
        self.acknowledged = self.acknowledged.max(come).min(self.sent_up_to);
    }

    pub fn heard(&self) -> u32 {
        self.heard
    }

    /// Whether there are answers that its client waits for, and may.
    pub fn must_recover(&self) -> bool {
        let all = ANSWER * self.script.requests.len() as u32;
        let is_open = self.is_honest && !self.is_closed && !self.has_said_all;
        is_open && self.heard < all
    }

    /// The rest of the first request that no data server has read all of, as far as a segment holds it; with `all`, of
    /// all that the client will ever say.
    pub fn first_unread(&self, all: bool) -> Option<Range<usize>> {
        let read = self.held.iter().filter_map(|held| {
            let socket = held.socket.as_ref()?;
            self.offset(socket.next)
        });
        let begin = read.max().unwrap_or(0).max(self.acknowledged);
        let request = &self.script.requests[self.script.at(begin)?];
        let end = if all {
            self.script.text.len()
        } else {
            request.end
        };
        Some(begin..end.min(begin + SEGMENT))
    }

    /// What begins in a packet may come once more from now on.
    pub fn note_try(&mut self, packet: &Packet) {
        let Some(begin) = self.offset(packet.seq) else {
            return;
        };
        let end = begin + packet.payload.len();
        for (tries, request) in self.tries.iter_mut().zip(&self.script.requests) {
            *tries += usize::from((begin..end).contains(&request.begin));
        }
    }

    /// The client gets some of what was written, or all.
    pub fn hear(&mut self, how: usize) {
        let written = self.held.iter().filter_map(|held| {
            let socket = held.socket.as_ref()?;
            Some(socket.write.wrapping_sub(self.first_answer))
        });
        let new = written.max().unwrap_or(0).saturating_sub(self.heard);
        self.heard += if how.is_multiple_of(4) { new / 2 } else { new };
    }

    /// A data server writes: the rest of a response, or the next one. False if it has nothing to say.
    pub fn answer(
        &mut self,
        server: usize,
        how: usize,
        state: Option<Response>,
        half: bool,
    ) -> bool {
        let Some(socket) = &mut self.held[server].socket else {
            return false;
        };
        if socket.is(Response::Unknown) || socket.is(Response::Tunnel) {
            return false;
        }
        if socket.go_on() {
            return true;
        }
        let Some(request) = socket.to_answer() else {
            return false;
        };
        // Few servers answer before they have read all.
        if request.end.is_none_or(|end| end > socket.text.len())
            && (!how.is_multiple_of(8) || !self.habits.answers_early)
        {
            return false;
        }
        let left = if half { ANSWER / 2 } else { 0 };
        socket.respond(ANSWER, left, state);
        true
    }

    /// A data server's TCP has taken these bytes. Only those of its own requests may have come so far.
    pub fn taken(&mut self, server: usize, bytes: Range<u32>) -> Result<(), String> {
        let Some(socket) = &self.held[server].socket else {
            return Ok(());
        };
        for request in http::requests(&socket.text) {
            if socket.is(Response::Tunnel) {
                break;
            }
            if request.pool.is_some_and(|pool| !pool.has(server)) {
                let begin = &socket.text[request.begin..];
                let begin = String::from_utf8_lossy(&begin[..begin.len().min(20)]);
                return Err(format!("server {server} has read {begin:?}"));
            }
        }
        if !self.is_honest {
            return Ok(());
        }
        let read = self.offset(socket.next);
        let taken_from = self.offset(socket.begin);
        let (Some(begin), Some(end)) = (self.offset(bytes.start), self.offset(bytes.end)) else {
            return Err(format!("server {server} has taken what was never sent"));
        };
        for (index, request) in self.script.requests.iter().enumerate() {
            let is_part = request.begin < end && begin < request.end;
            if is_part && !request.pool.has(server) {
                return Err(format!(
                    "server {server} has got bytes {begin}..{end}, and request {index} there is for {:?}",
                    request.pool
                ));
            }
            let is_read = Some(request.begin) < read && Some(request.begin) >= taken_from;
            let readers = &mut self.readers[index];
            if is_read && !readers.contains(&server) {
                readers.push(server);
                let tries = self.tries[index];
                if readers.len() > tries {
                    return Err(format!(
                        "request {index} was sent {tries} times, and servers {readers:?} have read it"
                    ));
                }
            }
        }
        Ok(())
    }

    /// By somebody who knows addresses and ports, and guesses the rest: far from where the connection is.
    pub fn forged(&self, a: usize, b: usize) -> Packet {
        let far = |n: usize| (n as u32).wrapping_mul(0x9e37_79b1).rotate_left(7) | 1 << 18;
        let distance = (far(a) % 0xf000_0000) + (1 << 21);
        let here = self.seq(self.sent_up_to);
        let flags = [ACK | PSH, ACK, ACK | FIN, RST, RST | ACK, SYN, PSH, FIN][b % 8];
        let payload = match flags {
            flags if flags & PSH != 0 => b"GET /a/ HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
            _ => Vec::new(),
        };
        Packet {
            client: self.client,
            seq: here.wrapping_add(distance),
            ack: far(b),
            flags,
            payload,
        }
    }

    /// By somebody who happens to be near: it is not told from the client by its numbers.
    pub fn forged_near(&mut self, a: usize, b: usize) -> Packet {
        let flags = [ACK | PSH, ACK, ACK | FIN, RST][b % 4];
        let payload = match flags {
            flags if flags & PSH != 0 => b"GET /b/ HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
            _ => Vec::new(),
        };
        self.is_honest = false;
        let seq = self.seq(self.sent_up_to);
        let ack = self.first_answer.wrapping_add(self.heard);
        Packet {
            client: self.client,
            seq: seq.wrapping_add(a as u32 % 512).wrapping_sub(256),
            ack: ack.wrapping_add((b / 4) as u32 % 512).wrapping_sub(256),
            flags,
            payload,
        }
    }

    pub fn has_acknowledged(&self, ack: u32) -> bool {
        self.said.contains(&ack)
    }

    /// Whether a packet is one that an honest client may have sent.
    pub fn is_of_client(&self, packet: &Packet) -> bool {
        let begin = self.offset(packet.seq);
        let text = begin.and_then(|begin| self.script.text.get(begin..));
        text.is_some_and(|text| text.starts_with(&packet.payload))
    }

    /// A packet in words: where its data is in the stream, and what it acknowledges.
    pub fn describe(&self, packet: &Packet) -> String {
        let seq = packet.seq.wrapping_sub(self.first) as i32;
        let ack = packet.ack.wrapping_sub(self.first_answer) as i32;
        let end = seq.wrapping_add(packet.payload.len() as i32);
        let text = String::from_utf8_lossy(&packet.payload[..packet.payload.len().min(24)]);
        let flags = letters(packet.flags);
        format!("{flags} {seq}..{end} ack {ack} {text:?}")
    }
}
