//! A TCP socket of a data server, as far as the door and its server see it.

use std::collections::VecDeque;

use crate::http::Reader;
use crate::native::{Listener, Numbers};

/// The receive window of a socket.
const WINDOW: u32 = 65535;
const ESTABLISHED: u32 = 1;

pub fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

#[derive(Clone, Debug)]
pub struct Socket {
    /// A number that no other socket of the sequence has.
    pub id: u32,
    pub of: Listener,
    pub numbers: Numbers,
    /// The segments that came behind a gap.
    pub gap: Vec<(u32, Vec<u8>)>,
    pub reader: Reader,
    /// All bytes that the socket has accepted.
    pub stream: Vec<u8>,
    /// How many requests were answered, at least in part.
    pub answered: usize,
    /// What is not written yet of the last answer.
    pub unsaid: VecDeque<u8>,
}

impl Socket {
    pub fn new(id: u32, of: Listener, seq: u32, ack: u32) -> Self {
        Self {
            id,
            of,
            numbers: Numbers {
                state: ESTABLISHED,
                begin: seq,
                rcv_nxt: seq,
                rcv_wup: seq,
                copied_seq: seq,
                write_seq: ack,
                snd_una: ack,
                bytes_acked: 0,
            },
            gap: Vec::new(),
            reader: Reader::default(),
            stream: Vec::new(),
            answered: 0,
            unsaid: VecDeque::new(),
        }
    }

    /// Takes a segment. Returns the bytes that TCP accepts with it, which may have come earlier behind a gap.
    pub fn take(&mut self, seq: u32, ack: u32, payload: &[u8]) -> Vec<u8> {
        let n = &mut self.numbers;
        let end = seq.wrapping_add(payload.len() as u32);
        let is_far = is_before(n.rcv_nxt.wrapping_add(WINDOW), end)
            || is_before(end, n.rcv_nxt.wrapping_sub(1 << 20));
        if is_far || is_before(n.write_seq, ack) {
            return Vec::new();
        }
        if is_before(n.snd_una, ack) {
            n.bytes_acked += ack.wrapping_sub(n.snd_una);
            n.snd_una = ack;
        }
        if !is_before(n.rcv_nxt, end) {
            return Vec::new();
        }
        if payload.is_empty() {
            return Vec::new();
        }
        if is_before(n.rcv_nxt, seq) {
            self.gap.push((seq, payload.to_vec()));
            return Vec::new();
        }
        let mut taken = payload[n.rcv_nxt.wrapping_sub(seq) as usize..].to_vec();
        n.rcv_nxt = end;
        while let Some(next) = self
            .gap
            .iter()
            .position(|(seq, _)| !is_before(n.rcv_nxt, *seq))
        {
            let (seq, bytes) = self.gap.swap_remove(next);
            let old = n.rcv_nxt.wrapping_sub(seq) as usize;
            if old < bytes.len() {
                taken.extend(&bytes[old..]);
                n.rcv_nxt = seq.wrapping_add(bytes.len() as u32);
            }
        }
        self.stream.extend(&taken);
        taken
    }

    /// Lets TCP acknowledge all that is there. The program of a server reads it, too.
    pub fn read(&mut self) {
        self.numbers.rcv_wup = self.numbers.rcv_nxt;
        if self.of == Listener::Server {
            self.numbers.copied_seq = self.numbers.rcv_nxt;
        }
    }
}
