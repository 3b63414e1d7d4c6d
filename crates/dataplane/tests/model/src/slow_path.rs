//! User space, as far as requests need it whose heads are in several packets, and packets with more than one request: what
//! it may know is in the bytes that it is shown.

use std::{collections::HashMap, net::SocketAddrV4, time::Duration};

use baton_abi::TcbKey;
use baton_core::{
    Moment,
    heads::{Heads, PAUSE, Step, head_length},
    whole_heads::WholeHeads,
};
use baton_dataplane::{Findings, Lead, Punt, Punts, RequestLength, Resumed};

use crate::{
    cluster::HTTP,
    http::{self, Request},
    packet::{ETHERNET_BYTES, FIN, PSH, Packet},
    pool::Pool,
};

pub struct SlowPath {
    punts: Punts,
    /// No head here takes long.
    now: Moment,
    /// The real ones: what clients say in them, in whatever order, is not so simple that a model would be simpler.
    heads: Heads<SocketAddrV4, Punt>,
    whole_heads: WholeHeads<SocketAddrV4, Punt>,
    /// Frames of the last head of a connection of which its client was told that some had come.
    repeats: HashMap<SocketAddrV4, Vec<Punt>>,
    acknowledged: Vec<(SocketAddrV4, u32)>,
}

impl SlowPath {
    pub fn new(punts: Punts) -> Self {
        Self {
            punts,
            now: Moment::after_epoch(Duration::ZERO),
            heads: Heads::default(),
            whole_heads: WholeHeads::default(),
            repeats: HashMap::new(),
            acknowledged: Vec::new(),
        }
    }

    pub fn punts(&self) -> &Punts {
        &self.punts
    }

    /// Forgets what it has put together, and what it has not looked at.
    pub fn begin(&mut self) {
        self.now = Moment::after_epoch(Duration::ZERO);
        self.heads = Heads::default();
        self.whole_heads = WholeHeads::default();
        self.repeats.clear();
        self.acknowledged.clear();
        while !self.shown().is_empty() {}
    }

    fn shown(&self) -> Vec<Punt> {
        self.punts.wait(Duration::ZERO).unwrap().collect()
    }

    /// Deals with what the program has shown it. The frames that leave.
    pub fn work(&mut self) -> Vec<Vec<u8>> {
        let mut left = Vec::new();
        loop {
            let shown = self.shown();
            if shown.is_empty() {
                return left;
            }
            for punt in shown {
                left.extend(self.judge(punt).into_iter().filter_map(leaving));
            }
        }
    }

    fn judge(&mut self, punt: Punt) -> Vec<Resumed> {
        let packet = Packet::read(&punt.frame[ETHERNET_BYTES..]).expect("a client's packet");
        if let Some(at) = punt.divide_at {
            return divided(&packet, at.get().into())
                .map(|part| self.punts.let_go(&like(&punt, &part)).unwrap())
                .into();
        }
        let (client, seq, is_behind) = (packet.client, packet.seq, punt.is_behind);
        self.now = self.now + PAUSE;
        let now = self.now;
        let is_repeat = punt.is_repeat;
        let is_begun = http::requests(&packet.payload)
            .first()
            .is_none_or(|request| request.head.is_none());
        if !is_behind {
            self.heads.pass(&client, seq);
        }
        let step = match self.heads.add(now, client, seq, &packet.payload, punt) {
            Step::Foreign(_)
                if is_begun
                    && !is_behind
                    && self.was_judged(now, &client, seq, &packet.payload) =>
            {
                return Vec::new();
            }
            Step::Foreign(punt) if is_begun && !is_behind => {
                self.heads.begin(now, client, seq, &packet.payload, punt)
            }
            step => step,
        };
        match step {
            Step::Foreign(punt) if is_behind => {
                match self.whole_heads.again(now, &client, seq, &packet.payload) {
                    Some(frames) if !is_repeat => frames
                        .iter()
                        .map(|frame| self.punts.repeat(frame).unwrap())
                        .collect(),
                    _ => vec![self.punts.follow(&punt).unwrap()],
                }
            }
            Step::Waits => Vec::new(),
            Step::Stuck => {
                let first = self.heads.first(&client).expect("it has a frame");
                let has_owner = || self.punts.has_owner(&TcbKey::of(client, HTTP)).unwrap();
                if has_owner() {
                    let asked = self.punts.ask(first).unwrap();
                    if has_owner() {
                        return vec![asked];
                    }
                }
                let first =
                    Packet::read(&first.frame[ETHERNET_BYTES..]).expect("a client's packet");
                self.come(client, first.seq);
                Vec::new()
            }
            Step::TooLong(_) => panic!("no client says so much"),
            Step::Foreign(punt) => {
                let (request, rest) = cut_behind_request(punt, &packet);
                let mut left = self.decide(&packet.payload, &[request]);
                left.extend(rest.map(|rest| self.punts.let_go(&rest).unwrap()));
                left
            }
            Step::Whole {
                text,
                mut frames,
                is_acknowledged,
            } => {
                line_up(&mut frames);
                let rest = cut(&text, &mut frames);
                if let (Some(head), [first, _, ..]) = (head_length(&text), &frames[..]) {
                    let begin = Packet::read(&first.frame[ETHERNET_BYTES..]).map(|first| first.seq);
                    self.whole_heads.add(
                        now,
                        client,
                        begin.expect("a client's packet"),
                        text[..head].to_owned(),
                        frames.clone(),
                        is_acknowledged,
                    );
                }
                if is_acknowledged {
                    self.repeats.insert(client, frames.clone());
                }
                let mut left = self.decide(&text, &frames);
                left.extend(rest.map(|rest| self.punts.let_go(&rest).unwrap()));
                left
            }
        }
    }

    /// The beginning of a head that was put together and has gone its way.
    fn was_judged(&self, now: Moment, client: &SocketAddrV4, seq: u32, payload: &[u8]) -> bool {
        self.whole_heads.again(now, client, seq, payload).is_some()
            && self
                .punts
                .has_begun(&TcbKey::of(*client, HTTP), seq)
                .unwrap()
    }

    /// Lets a request go whose text this begins with, and the frames that it came in.
    fn decide(&self, text: &[u8], frames: &[Punt]) -> Vec<Resumed> {
        let request = http::requests(text).into_iter().next();
        let pool = request.as_ref().and_then(|request| request.pool);
        let length = request.and_then(|request| length(text, &request));
        let findings = Findings {
            length,
            is_cut: pool.is_none(),
            ..Findings::default()
        };
        let lead = pool.filter(|pool| *pool != Pool::Rest).map(|pool| Lead {
            pool: pool.index(),
            route: 0,
            resumes: false,
        });
        let [first, behind @ ..] = frames else {
            return Vec::new();
        };
        let first = self.punts.resume_by(first, lead, None, findings).unwrap();
        let behind = behind.iter().map(|frame| self.punts.follow(frame).unwrap());
        std::iter::once(first).chain(behind).collect()
    }

    /// Sends again what a client was told to have come, and shall not send again itself. The frames that leave.
    pub fn repeat(&mut self, client: SocketAddrV4) -> Vec<Vec<u8>> {
        let frames = self.repeats.get(&client).into_iter().flatten();
        let repeated = frames.map(|frame| self.punts.repeat(frame).unwrap());
        let mut left: Vec<_> = repeated.filter_map(leaving).collect();
        left.extend(self.work());
        left
    }

    /// All before this sequence number has come to its server.
    pub fn come(&mut self, client: SocketAddrV4, come: u32) {
        let told = self.heads.acknowledge(&client, come);
        self.acknowledged
            .extend(told.map(|(next, _)| (client, next)));
    }

    /// What clients were told lately to have come, up to a sequence number each.
    pub fn acknowledged(&mut self) -> Vec<(SocketAddrV4, u32)> {
        std::mem::take(&mut self.acknowledged)
    }
}

/// How long a request is, once that is known.
fn length(text: &[u8], request: &Request) -> Option<RequestLength> {
    let head = request.head?;
    Some(match request.end {
        Some(end) if !http::is_chunked(&text[..head]) => RequestLength::Bytes {
            head: head as u32,
            body: (end - head) as u64,
        },
        _ => RequestLength::Chunked(head as u32),
    })
}

/// Leaves nothing in the only frame of a request but that; what is behind it.
fn cut_behind_request(punt: Punt, packet: &Packet) -> (Punt, Option<Punt>) {
    let requests = http::requests(&packet.payload);
    let length = (requests.first()).and_then(|request| length(&packet.payload, request));
    let end = match length {
        Some(RequestLength::Bytes { head, body }) => head + body as u32,
        Some(RequestLength::Chunked(head) | RequestLength::Endless(head)) => head,
        None => return (punt, None),
    };
    if end as usize >= packet.payload.len() {
        return (punt, None);
    }
    let [request, rest] = divided(packet, end as usize).map(|part| like(&punt, &part));
    (request, Some(rest))
}

/// Has each of them begin where the one before ends, and all acknowledge what one of them does.
fn line_up(frames: &mut [Punt]) {
    let read =
        |punt: &Punt| Packet::read(&punt.frame[ETHERNET_BYTES..]).expect("a client's packet");
    let is_newer = |a: u32, b: u32| b.wrapping_sub(a) < 1 << 31;
    let acks = frames.iter().map(|punt| read(punt).ack);
    let Some(ack) = acks.reduce(|a, b| if is_newer(a, b) { b } else { a }) else {
        return;
    };
    let mut next = None;
    for punt in frames {
        let packet = read(punt);
        let seq = next.unwrap_or(packet.seq);
        let payload = packet.payload[seq.wrapping_sub(packet.seq) as usize..].to_vec();
        let lined_up = Packet {
            seq,
            ack,
            payload,
            ..packet
        };
        next = Some(lined_up.end());
        *punt = like(punt, &lined_up);
    }
}

/// Leaves nothing in the last of several frames but the end of the head; what is behind that.
fn cut(text: &[u8], frames: &mut [Punt]) -> Option<Punt> {
    let [_, .., last] = frames else {
        return None;
    };
    let head = http::requests(text).first()?.head?;
    let packet = Packet::read(&last.frame[ETHERNET_BYTES..]).expect("a client's packet");
    let behind = text.len() - head;
    if behind == 0 {
        return None;
    }
    let [end, rest] = divided(&packet, packet.payload.len() - behind);
    let rest = like(last, &rest);
    *last = like(last, &end);
    Some(rest)
}

/// Another frame that came the same way.
fn like(punt: &Punt, packet: &Packet) -> Punt {
    Punt {
        divide_at: None,
        is_behind: false,
        is_repeat: false,
        frame: packet.frame(),
        ..punt.clone()
    }
}

fn leaving(resumed: Resumed) -> Option<Vec<u8>> {
    match resumed {
        Resumed::Leaves(frame) => Some(frame),
        _ => None,
    }
}

fn divided(packet: &Packet, at: usize) -> [Packet; 2] {
    let (first, rest) = packet.payload.split_at(at);
    let part = |payload: &[u8], from: usize, flags: u8| Packet {
        seq: packet.seq.wrapping_add(from as u32),
        flags,
        payload: payload.to_vec(),
        ..packet.clone()
    };
    [
        part(first, 0, packet.flags & !(FIN | PSH)),
        part(rest, at, packet.flags),
    ]
}
