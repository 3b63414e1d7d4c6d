//! One sequence, step by step: the client, the connection server, the data servers and what is between them; and the
//! rules that must hold.

use std::collections::VecDeque;

use baton_abi::{
    AGENT_METADATA, DOOR_NOBODY, DOOR_READING, Door, HaveRead, Kept, LEAVE_METADATA, READ_CHUNKED,
};

use crate::http::{Reader, State, may_answer};
use crate::native::{
    self, ADOPT, CLAIM, CONNECTION_SERVER, FORWARD, Frame, Listener, MOVED, NODES, NONE, Packet,
    Programs, REFUSED, RawPacket, Way,
};
use crate::script::Stream;
use crate::socket::{Socket, is_before};
use crate::step::{Fate, Step, Trial};

/// The result of a step. The error says which rule does not hold.
pub type Checked = Result<(), String>;

/// A packet that a door has let in, and the number of the socket that was there then.
struct LetIn {
    frame: Frame,
    socket: Option<u32>,
}

#[derive(Default)]
pub struct Node {
    pub socket: Option<Socket>,
    /// Whether no server listens.
    is_deserted: bool,
    let_in: VecDeque<LetIn>,
    ingress: VecDeque<Packet>,
    early: Vec<Packet>,
    /// What the agent here has read. The agent keeps it until the connection's socket has it.
    keeps: Vec<Packet>,
}

pub struct World<'a> {
    programs: &'a mut Programs,
    pub trial: &'a Trial,
    pub stream: Stream,
    pub nodes: [Node; NODES.len()],
    /// The packets that wait in the network on their way to the connection server.
    network: Vec<Packet>,
    /// The messages on their way, each with its receiver.
    messages: Vec<(usize, Packet)>,
    /// The data server that the connection server takes for the owner.
    owner: Option<usize>,
    /// What the connection server knows of the connection while it has no entry of it, but has had one.
    stray: Option<Stray>,
    /// The time in milliseconds.
    now: u64,
    /// Where the request begins that is being adopted, as far as the connection server knows.
    adopting: Option<u32>,
    /// How often that request was sent on before it came to its owner.
    attempt: u8,
    /// In how many ticks the owner has said since that it does not have the connection, and the last of these ticks.
    nones: (u32, u64),
    /// The newest acknowledgement that the connection server knows.
    last_ack: u32,
    /// Up to which sequence number the client has the responses.
    pub heard: u32,
    /// Up to where the client knows that its data has come.
    pub acknowledged: u32,
    /// The last acknowledgement that the client has sent by itself.
    said: u32,
    /// The parts of the stream that servers have accepted: begin, end and the number of the socket.
    accepted: Vec<(u32, u32, u32)>,
    pub served: usize,
    sockets: u32,
    /// Whether the connection has ended with an error of which its client hears.
    pub is_refused: bool,
    pub tells: bool,
}

/// What the connection server knows of a connection without an entry, with times in milliseconds.
#[derive(Clone, Copy)]
struct Stray {
    /// When the first packet came that found no entry, and when the data servers were last asked for such a packet.
    /// `None`: none has come.
    asked: Option<(u64, u64)>,
    /// Whether they have said since that nobody has the connection.
    is_nobodys: bool,
}

/// How long the connection server waits for an answer, in milliseconds (bpf/connection_server/find/claim.h).
const PATIENCE: u64 = 134;
/// How long it waits at least before it ends a connection that nobody has, in milliseconds: `stray_grace`.
const GRACE: u64 = 1000;
/// In how many ticks the owner may say that it does not have the connection that it is to adopt
/// (bpf/connection_server/find/none.h).
const AWAITED: u32 = 5;
/// The length of a tick in milliseconds.
const TICK: u64 = 1074;
/// How much a client may send before it hears of its server (bpf/connection_server/forwarder.h).
const FIRST_FLIGHT: u32 = 64 << 10;

/// The connection server as a receiver of messages. Smaller numbers are data servers.
const TO_CONNECTION_SERVER: usize = NODES.len();

impl<'a> World<'a> {
    pub fn new(programs: &'a mut Programs, trial: &'a Trial, tells: bool) -> Self {
        programs.reset(trial.mix.has_agent);
        Self {
            programs,
            trial,
            stream: Stream::of(&trial.requests),
            nodes: Default::default(),
            network: Vec::new(),
            messages: Vec::new(),
            owner: None,
            stray: None,
            now: 0,
            adopting: Some(trial.client_isn),
            attempt: 0,
            nones: (0, 0),
            last_ack: trial.server_isn,
            heard: trial.server_isn,
            acknowledged: 0,
            said: trial.server_isn,
            accepted: Vec::new(),
            served: 0,
            sockets: 0,
            is_refused: false,
            tells,
        }
    }

    pub fn seq(&self, at: u32) -> u32 {
        self.trial.client_isn.wrapping_add(at)
    }

    /// The client's packet with this part of its stream.
    pub fn packet(&self, at: u32, bytes: u32) -> Packet {
        Packet {
            raw: RawPacket {
                seq: self.seq(at),
                ack: self.heard,
                ..RawPacket::default()
            },
            payload: self.stream.part(at, bytes),
        }
    }

    pub fn run_step(&mut self, step: &Step) -> Checked {
        match *step {
            Step::Send {
                at,
                bytes,
                change,
                fate,
            } => {
                let mut packet = self.packet(at, bytes);
                if let Some(change) = change {
                    change.apply(&mut packet.payload);
                }
                match fate {
                    Fate::Comes => self.pass_on(packet),
                    Fate::Waits => {
                        self.network.push(packet);
                        Ok(())
                    }
                    Fate::Lost => Ok(()),
                }
            }
            Step::Comes { which, again } => match pick(&self.network, which) {
                Some(one) if again => self.pass_on(self.network[one].clone()),
                Some(one) => {
                    let packet = self.network.remove(one);
                    self.pass_on(packet)
                }
                None => Ok(()),
            },
            Step::Lost { which } => {
                if let Some(one) = pick(&self.network, which) {
                    self.network.remove(one);
                }
                Ok(())
            }
            Step::Message { which } => self.take_message(which),
            Step::MessageLost { which } => {
                if let Some(one) = pick(&self.messages, which) {
                    self.messages.remove(one);
                }
                Ok(())
            }
            Step::Tcp { node, packets } => (0..packets).try_for_each(|_| self.take_let_in(node)),
            Step::Dropped { node } => {
                self.drop_let_in(node);
                Ok(())
            }
            Step::Again { node, packets } => (0..packets).try_for_each(|_| self.come_again(node)),
            Step::Early { node } => self.send_early(node),
            Step::Read { node } => {
                self.read(node);
                Ok(())
            }
            Step::Write { node, bytes } => {
                self.write(node, bytes);
                Ok(())
            }
            Step::Ack => self.acknowledge(),
            Step::Agent { node } => self.run_agent(node),
            Step::Listens { node, again } => self.listen(node, again),
            Step::Rests => self.settle(),
            Step::Drains { node, again } => {
                self.programs.drain(node, !again);
                Ok(())
            }
            Step::Leaves { node } => self.leave_idle(node),
            Step::Forge { seq, ack, bytes } => self.forge(seq, ack, bytes),
            Step::Time { milliseconds } => self.pass_time(milliseconds),
        }
    }

    /// Has the server of a node stop listening, or listen again. To start takes longer than messages are on their way,
    /// so these arrive first. What its door has let in comes to TCP before it stops.
    fn listen(&mut self, node: usize, listens: bool) -> Checked {
        while !listens && !self.nodes[node].let_in.is_empty() {
            self.take_let_in(node)?;
        }
        while listens && !self.messages.is_empty() {
            self.take_message(0)?;
        }
        self.nodes[node].is_deserted = !listens;
        self.programs.desert(node, !listens);
        Ok(())
    }

    /// Sends in the empty ACK with which an idle connection leaves.
    fn leave_idle(&mut self, node: usize) -> Checked {
        let packet = Packet {
            raw: RawPacket {
                sent_in: LEAVE_METADATA,
                ..RawPacket::default()
            },
            payload: Vec::new(),
        };
        self.arrive(node, packet)
    }

    /// Has all servers listen.
    pub fn listen_again(&mut self) -> Checked {
        for node in 0..NODES.len() {
            if self.nodes[node].is_deserted {
                self.listen(node, true)?;
            }
        }
        Ok(())
    }

    /// Lets time pass. No packet stays inside a node for as long as that, so these packets are taken first.
    pub fn pass_time(&mut self, milliseconds: u16) -> Checked {
        for node in 0..NODES.len() {
            while !self.nodes[node].let_in.is_empty() || !self.nodes[node].ingress.is_empty() {
                while !self.nodes[node].let_in.is_empty() {
                    self.take_let_in(node)?;
                }
                self.come_again(node)?;
            }
        }
        self.now += u64::from(milliseconds);
        self.programs.pass_time(u64::from(milliseconds) * 1_000_000);
        Ok(())
    }

    /// Gives the connection server a packet of the client.
    pub fn pass_on(&mut self, packet: Packet) -> Checked {
        let RawPacket { seq, ack, .. } = packet.raw;
        if is_before(self.last_ack, ack) {
            self.last_ack = ack;
            self.adopting = None;
        }
        let has_data = !packet.payload.is_empty();
        let behind = self.adopting.map(|begin| seq.wrapping_sub(begin));
        let Some(owner) = self.owner else {
            if let Some(stray) = self.stray {
                return self.find(packet, stray);
            }
            if behind != Some(0) || !has_data {
                return Ok(());
            }
            self.owner = Some(self.trial.hint);
            return self.adopt(self.trial.hint, packet);
        };
        match behind {
            Some(0) if has_data && ack == self.last_ack => self.adopt(owner, packet),
            Some(bytes) if has_data && bytes < FIRST_FLIGHT => {
                self.send_message(owner, packet, FORWARD, 0)
            }
            _ => self.arrive(owner, packet),
        }
    }

    fn send_message(
        &mut self,
        node: usize,
        mut packet: Packet,
        command: u8,
        attempt: u8,
    ) -> Checked {
        packet.raw.peer = CONNECTION_SERVER;
        packet.raw.header = native::header(command, attempt);
        self.arrive(node, packet)
    }

    fn adopt(&mut self, node: usize, packet: Packet) -> Checked {
        self.send_message(node, packet, ADOPT, self.attempt)
    }

    /// Gives this node a packet.
    fn arrive(&mut self, node: usize, packet: Packet) -> Checked {
        if let Some(socket) = &self.nodes[node].socket {
            self.programs.set_socket(node, &socket.numbers, false);
        }
        if self.tells {
            println!("      {node} <- {}", self.show(&packet));
        }
        let socket = self.nodes[node].socket.as_ref().map(|socket| socket.id);
        for frame in self.programs.receive(node, &packet) {
            if self.tells {
                println!(
                    "         {:?} {:?} {}",
                    frame.way,
                    frame.assigned,
                    self.show(&frame.packet)
                );
            }
            let mut packet = frame.packet.clone();
            match frame.way {
                Way::Tcp => self.nodes[node].let_in.push_back(LetIn { frame, socket }),
                Way::Ingress => self.nodes[node].ingress.push_back(packet),
                Way::Early => wait(&mut self.nodes[node].early, packet),
                Way::Out => {
                    let to = NODES.iter().position(|&one| one == packet.raw.peer);
                    packet.raw.peer = NODES[node];
                    self.messages
                        .push((to.unwrap_or(TO_CONNECTION_SERVER), packet));
                }
            }
        }
        self.check_door(node)
    }

    fn take_message(&mut self, which: u8) -> Checked {
        let Some(one) = pick(&self.messages, which) else {
            return Ok(());
        };
        let (to, packet) = self.messages.remove(one);
        if to != TO_CONNECTION_SERVER {
            return self.arrive(to, packet);
        }
        let from = NODES.iter().position(|&one| one == packet.raw.peer);
        if self.tells {
            println!("      connection server <- {}", self.show(&packet));
        }
        match packet.raw.header.command {
            // This follows bpf/connection_server/find/moved.h.
            MOVED => {
                let header = packet.raw.header;
                let next = match header.be_data {
                    0 => from,
                    next => NODES.iter().position(|&one| one == next),
                };
                let with = u64::from_be(header.tcb.be_resume);
                let is_behind = with >> 32 != 0;
                let begin = if is_behind {
                    with as u32
                } else {
                    packet.raw.seq
                };
                let is_answer = self.owner.is_none() && self.stray.take().is_some();
                let is_newer = self.adopting.is_none_or(|known| is_before(known, begin));
                if is_answer {
                    self.owner = next;
                    self.adopting = None;
                }
                // Late, the answer to CLAIM says nothing new.
                if header.be_data == 0 {
                    return Ok(());
                }
                if is_answer || self.owner == from || (self.owner == next && is_newer) {
                    self.owner = next;
                    if is_behind || packet.raw.ack == self.last_ack {
                        self.adopting = Some(begin);
                        self.attempt = header.tcb.attempt;
                        self.nones = (0, 0);
                    }
                }
                Ok(())
            }
            REFUSED => {
                self.is_refused = true;
                Ok(())
            }
            NONE if packet.raw.header.tcb.attempt > 0 => {
                if let Some(stray) = &mut self.stray {
                    stray.is_nobodys = true;
                }
                Ok(())
            }
            NONE if self.owner != from => Ok(()),
            NONE if self.adopting.is_none() => self.claim(packet),
            NONE if self.is_awaited_too_long(&packet) => {
                self.adopting = None;
                self.claim(packet)
            }
            NONE => self.send_ahead(from, packet),
            _ => Ok(()),
        }
    }

    /// Whether the owner has said for too long of what the client must send again that it does not have the connection.
    fn is_awaited_too_long(&mut self, packet: &Packet) -> bool {
        let begin = self.adopting.unwrap_or(packet.raw.seq);
        if packet.payload.is_empty() || packet.raw.seq.wrapping_sub(begin) >= FIRST_FLIGHT {
            return false;
        }
        let (ticks, last) = self.nones;
        let tick = self.now / TICK;
        if ticks > 0 && tick == last {
            return false;
        }
        if ticks < AWAITED {
            self.nones = (ticks + 1, tick);
        }
        ticks >= AWAITED
    }

    /// Sends what may have come ahead of its request to the owner once more.
    fn send_ahead(&mut self, owner: Option<usize>, packet: Packet) -> Checked {
        match owner {
            Some(owner) => self.send_message(owner, packet, FORWARD, 1),
            None => Ok(()),
        }
    }

    /// Forgets who has the connection, and asks all data servers, one after the other.
    fn claim(&mut self, packet: Packet) -> Checked {
        self.owner = None;
        self.ask(packet, None)
    }

    /// Handles a packet of the client while nobody is known to have the connection, as `stray()` of
    /// bpf/connection_server/find/claim.h does.
    fn find(&mut self, packet: Packet, stray: Stray) -> Checked {
        let Some((first, asked)) = stray.asked else {
            return self.ask(packet, Some(self.now));
        };
        let is_late = self.now - first >= GRACE;
        match stray.is_nobodys {
            false if self.now - asked >= PATIENCE => self.ask(packet, Some(first)),
            true if is_late && asked - first < GRACE => self.ask(packet, Some(first)),
            // The client gets a RST.
            true if is_late => Err("nobody has the connection".into()),
            _ => Ok(()),
        }
    }

    /// Sends CLAIM with this packet to the first data server of the ring. `first` is the time of the first packet that
    /// found no entry.
    fn ask(&mut self, mut packet: Packet, first: Option<u64>) -> Checked {
        self.stray = Some(Stray {
            asked: first.map(|first| (first, self.now)),
            is_nobodys: false,
        });
        packet.raw.peer = CONNECTION_SERVER;
        packet.raw.header = native::header(CLAIM, 0);
        self.messages.push((0, packet));
        Ok(())
    }

    /// TCP takes the next packet that the door has let in.
    fn take_let_in(&mut self, node: usize) -> Checked {
        let Some(LetIn { frame, socket }) = self.nodes[node].let_in.pop_front() else {
            return Ok(());
        };
        let RawPacket { seq, ack, rst, .. } = frame.packet.raw;
        if frame.assigned != Listener::None {
            let is_deserted = frame.assigned == Listener::Server && self.nodes[node].is_deserted;
            if self.nodes[node].socket.is_some() || is_deserted {
                return Ok(());
            }
            self.sockets += 1;
            let new = Socket::new(self.sockets, frame.assigned, seq, ack);
            self.programs.set_socket(node, &new.numbers, true);
            self.nodes[node].socket = Some(new);
        } else if socket.is_none() {
            return Err("a packet without a socket comes to TCP, which resets its client".into());
        }
        let Some(now) = &mut self.nodes[node].socket else {
            return Ok(());
        };
        if frame.bound && socket != Some(now.id) {
            return Ok(());
        }
        if rst != 0 {
            if now.numbers.rcv_nxt == seq {
                self.nodes[node].socket = None;
                self.programs
                    .set_socket(node, &native::Numbers::default(), true);
            }
            return Ok(());
        }
        let before = now.numbers.rcv_nxt;
        let taken = now.take(seq, ack, &frame.packet.payload);
        let numbers = now.numbers;
        self.programs.set_socket(node, &numbers, false);
        if now.of == Listener::Server {
            self.check_accepted(node, before, &taken)?;
        }
        self.check_door(node)
    }

    /// Lets TCP drop the next packet, but not one that a node has made. The checksum of a RST is right if that of the
    /// packet is right from which it was made, and that of an ACK with which an idle connection comes is right. Nor does
    /// it drop what begins a connection and was acknowledged by an agent: then the connection would be lost.
    fn drop_let_in(&mut self, node: usize) {
        let acknowledged = self.seq(self.acknowledged);
        let let_in = &mut self.nodes[node].let_in;
        if let_in.front().is_some_and(|one| {
            let Frame {
                assigned, packet, ..
            } = &one.frame;
            let is_known = packet.payload.is_empty() || is_before(packet.raw.seq, acknowledged);
            packet.raw.rst == 0 && !(*assigned != Listener::None && is_known)
        }) {
            let_in.pop_front();
        }
    }

    fn come_again(&mut self, node: usize) -> Checked {
        match self.nodes[node].ingress.pop_front() {
            Some(packet) => self.arrive(node, packet),
            None => Ok(()),
        }
    }

    fn send_early(&mut self, node: usize) -> Checked {
        let mut early = std::mem::take(&mut self.nodes[node].early);
        early.sort_by_key(|one| one.raw.seq.wrapping_sub(self.trial.client_isn));
        early
            .into_iter()
            .try_for_each(|packet| self.arrive(node, packet))
    }

    fn read(&mut self, node: usize) {
        if let Some(socket) = &mut self.nodes[node].socket {
            socket.read();
            let has = socket.numbers.rcv_nxt.wrapping_sub(self.trial.client_isn);
            self.acknowledged = self.acknowledged.max(has);
        }
    }

    /// Lets the server write so many bytes of its answers.
    fn write(&mut self, node: usize, bytes: u8) {
        let Some(socket) = &mut self.nodes[node].socket else {
            return;
        };
        // The server has seen no more than it has read.
        let has_read = socket.numbers.copied_seq == socket.numbers.rcv_nxt;
        if socket.unsaid.is_empty() && has_read && socket.answered < socket.reader.whole.len() {
            socket
                .unsaid
                .extend(answer(socket.answered, socket.reader.whole[socket.answered]).bytes());
            socket.answered += 1;
        }
        let many = socket.unsaid.len().min(usize::from(bytes));
        let said: Vec<u8> = socket.unsaid.drain(..many).collect();
        if said.is_empty() {
            return;
        }
        let seq = socket.numbers.write_seq;
        self.programs.set_socket(node, &socket.numbers, false);
        self.programs.leave(node, seq, &said);
        socket.numbers.write_seq = seq.wrapping_add(said.len() as u32);
        if seq == self.heard {
            self.heard = socket.numbers.write_seq;
        }
    }

    /// Sends an empty packet that acknowledges what the client has received.
    pub fn acknowledge(&mut self) -> Checked {
        if self.owner.is_none() && self.stray.is_none() {
            return Ok(());
        }
        self.said = self.heard;
        let packet = self.packet(self.stream.len(), 0);
        self.pass_on(packet)
    }

    /// The agent looks at what its socket has, and gives the connection back once it has read a head.
    fn run_agent(&mut self, node: usize) -> Checked {
        self.read_as_agent(node);
        let keeps = self.nodes[node].keeps.clone();
        let (Some(first), Some(last)) = (keeps.first(), keeps.last()) else {
            return Ok(());
        };
        let received = self
            .programs
            .kept(node)
            .map_or(first.raw.seq, |kept| kept.received);
        if !is_before(received, last.end()) {
            self.nodes[node].keeps.clear();
            return Ok(());
        }
        let missing = keeps
            .into_iter()
            .filter(|one| is_before(received, one.end()));
        for packet in missing.collect::<Vec<_>>() {
            self.arrive(node, packet)?;
        }
        Ok(())
    }

    fn read_as_agent(&mut self, node: usize) {
        let Some(socket) = self.nodes[node]
            .socket
            .as_ref()
            .filter(|one| one.of == Listener::Agent)
        else {
            return;
        };
        let door = self.programs.door(node);
        if door.is_some_and(|door| u32::from(door.flags) & DOOR_NOBODY != 0) {
            // The agent answers.
            self.is_refused = true;
            return;
        }
        let mut reader = Reader::default();
        let Some(pool) = socket.stream.iter().find_map(|&byte| reader.take(byte)) else {
            return;
        };
        if reader.head.is_odd {
            return;
        }
        let read = HaveRead {
            end: socket.numbers.rcv_nxt,
            head: reader.head.bytes,
            body: reader.head.length as u32,
            pool,
            flags: if reader.head.is_chunked {
                READ_CHUNKED as u16 // a bit
            } else {
                0
            },
            ..HaveRead::default()
        };
        self.programs.set_read(node, &read);
        let begin = socket.numbers.begin;
        self.programs.keep(
            node,
            &Kept {
                received: begin,
                gone: 0,
            },
        );
        let raw = RawPacket {
            ack: socket.numbers.write_seq,
            sent_in: AGENT_METADATA,
            ..RawPacket::default()
        };
        let mut seq = begin;
        let frames = parts(&socket.stream).into_iter().map(|part| {
            let packet = Packet {
                raw: RawPacket { seq, ..raw },
                payload: part.to_vec(),
            };
            seq = packet.end();
            packet
        });
        // What another socket's agent keeps still, because the connection has come back before all of it arrived.
        let end = read.end;
        let mut keeps: Vec<_> = frames.collect();
        let others = self.nodes[node].keeps.drain(..);
        keeps.extend(others.filter(|other| is_before(end, other.end())));
        self.nodes[node].keeps = keeps;
    }

    /// Checks that a packet of somebody who knows no sequence number changes nothing. Guesses near a right number are
    /// left out.
    fn forge(&mut self, seq: u32, ack: u32, bytes: u16) -> Checked {
        let Some(owner) = self.owner else {
            return Ok(());
        };
        if seq
            .wrapping_sub(self.trial.client_isn)
            .wrapping_add(1 << 20)
            < 1 << 21
        {
            return Ok(());
        }
        let before = self.state_of(owner);
        let packet = Packet {
            raw: RawPacket {
                seq,
                ack,
                ..RawPacket::default()
            },
            payload: b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n"
                .iter()
                .copied()
                .cycle()
                .take(usize::from(bytes))
                .collect(),
        };
        let let_in = self.nodes[owner].let_in.len();
        self.arrive(owner, packet)?;
        // TCP takes the packet at once, because nothing else is to happen meanwhile.
        if self.nodes[owner].let_in.len() > let_in {
            let forged = self.nodes[owner].let_in.pop_back();
            self.nodes[owner]
                .let_in
                .push_front(forged.ok_or("it was there")?);
            self.take_let_in(owner)?;
        }
        if before == self.state_of(owner) {
            Ok(())
        } else {
            Err("a forged packet changes a connection".into())
        }
    }

    fn state_of(&self, node: usize) -> String {
        let socket = self.nodes[node]
            .socket
            .as_ref()
            .map(|one| (one.id, one.numbers.rcv_nxt, one.gap.len()));
        let door = self.programs.door(node).map(|door| {
            (
                door.request,
                door.head_end,
                door.next,
                door.body,
                door.pool,
                door.requests,
            )
        });
        format!("{socket:?} {door:?} {:?}", self.owner)
    }

    /// Checks the bytes that a server has accepted.
    fn check_accepted(&mut self, node: usize, begin: u32, bytes: &[u8]) -> Checked {
        let Some(socket) = &mut self.nodes[node].socket else {
            return Ok(());
        };
        let isn = self.trial.client_isn;
        let (from, to) = (
            begin.wrapping_sub(isn),
            begin.wrapping_sub(isn).wrapping_add(bytes.len() as u32),
        );
        for &(other_from, other_to, id) in &self.accepted {
            // A client that sends two contents with the same sequence numbers has asked twice.
            if !self.trial.mix.is_hostile && id != socket.id && from < other_to && other_from < to {
                return Err(format!("two servers read {from}..{to}"));
            }
        }
        if from < to {
            self.accepted.push((from, to, socket.id));
        }
        for &byte in bytes {
            if let Some(pool) = socket
                .reader
                .take(byte)
                .filter(|&pool| !may_answer(node, pool))
            {
                return Err(format!("server {node} reads a request of pool {pool}"));
            }
        }
        if let Some(pool) = socket
            .reader
            .coming()
            .filter(|&pool| !may_answer(node, pool))
        {
            return Err(format!(
                "server {node} reads a part of a request of pool {pool}"
            ));
        }
        self.served = self.served.max(
            self.accepted
                .iter()
                .map(|one| one.1 as usize)
                .max()
                .unwrap_or(0),
        );
        Ok(())
    }

    /// Checks that what the door knows is true.
    fn check_door(&self, node: usize) -> Checked {
        let Some(socket) = self.nodes[node]
            .socket
            .as_ref()
            .filter(|one| one.of == Listener::Server)
        else {
            return Ok(());
        };
        let Some(door) = self
            .programs
            .door(node)
            .filter(|door| u32::from(door.flags) & DOOR_READING == 0)
        else {
            return Ok(());
        };
        let rcv_nxt = socket.numbers.rcv_nxt;
        if is_before(door.request, socket.numbers.begin) {
            return Ok(());
        }
        let gap_end = socket
            .gap
            .iter()
            .map(|(seq, bytes)| seq.wrapping_add(bytes.len() as u32));
        if gap_end
            .chain([rcv_nxt])
            .any(|end| is_before(door.next, end))
        {
            return Err(format!(
                "server {node} has what is behind the last request that was let in"
            ));
        }
        if !is_before(rcv_nxt, door.head_end) && !matches_reader(&door, rcv_nxt, &socket.reader) {
            return Err(format!(
                "door {node} and its server disagree: {door:?} {rcv_nxt} {:?}",
                socket.reader.state
            ));
        }
        self.check_truth(&door)
    }

    /// Checks the door against the client's stream, if the client never changes what it has sent.
    fn check_truth(&self, door: &Door) -> Checked {
        if self.trial.mix.is_hostile {
            return Ok(());
        }
        let at = |seq: u32| seq.wrapping_sub(self.trial.client_isn);
        let (request, head_end, next) = (at(door.request), at(door.head_end), at(door.next));
        let is_in = |one: &&crate::script::Extent| one.begin <= request && request < one.end;
        let Some(one) = self.stream.requests.iter().find(is_in) else {
            return if request == self.stream.len() && next == request {
                Ok(())
            } else {
                Err(format!("a request begins nowhere: {request}"))
            };
        };
        let begins = one.begin == request;
        let nothing_yet = begins && head_end == request && next == request;
        let is_right = match one.is_chunked {
            false => begins && (head_end == one.head_end) && next == one.end,
            true => (!begins || head_end >= one.head_end) && head_end <= next && next <= one.end,
        };
        if nothing_yet || is_right {
            Ok(())
        } else {
            Err(format!(
                "a door thinks of {request}..{head_end}..{next}, and it is {one:?}"
            ))
        }
    }

    pub fn show(&self, packet: &Packet) -> String {
        let raw = &packet.raw;
        let at = raw.seq.wrapping_sub(self.trial.client_isn) as i32;
        let text =
            String::from_utf8_lossy(&packet.payload[..packet.payload.len().min(24)]).into_owned();
        format!(
            "{at}..{} ack {}{} command {} flags {} mark {:x} {text:?}",
            at.wrapping_add(packet.payload.len() as i32),
            raw.ack.wrapping_sub(self.trial.server_isn) as i32,
            if raw.rst != 0 { " RST" } else { "" },
            raw.header.command,
            raw.header.flags,
            raw.mark | raw.sent_in,
        )
    }

    /// Delivers all that is on its way, until nothing is left, and lets everybody do what there is to do.
    pub fn settle(&mut self) -> Checked {
        for _ in 0..200 {
            let mut is_still = self.messages.is_empty() && self.network.is_empty();
            while let Some(packet) = self.network.pop() {
                self.pass_on(packet)?;
            }
            while !self.messages.is_empty() {
                self.take_message(0)?;
            }
            if self.heard != self.said {
                is_still = false;
                self.acknowledge()?;
            }
            for node in 0..NODES.len() {
                while !self.nodes[node].let_in.is_empty() {
                    is_still = false;
                    self.take_let_in(node)?;
                }
                for _ in 0..self.nodes[node].ingress.len() {
                    is_still = false;
                    self.come_again(node)?;
                }
                self.read(node);
                for _ in 0..2 {
                    self.write(node, 255);
                }
            }
            if is_still && self.heard == self.said {
                return Ok(());
            }
        }
        Err("packets go round and round".into())
    }

    /// Lets user space try again to send in what waits there and what it keeps.
    pub fn try_again(&mut self) -> Checked {
        (0..NODES.len()).try_for_each(|node| {
            self.send_early(node)?;
            self.run_agent(node)
        })
    }

    /// Whether a server waits for the acknowledgement of something that it has written.
    pub fn is_unheard(&self) -> bool {
        let numbers = |node: &Node| node.socket.as_ref().map(|one| one.numbers);
        let waits = |one: native::Numbers| one.snd_una != one.write_seq;
        self.nodes.iter().filter_map(numbers).any(waits)
    }

    pub fn is_anywhere(&self) -> bool {
        self.nodes.iter().any(|node| node.socket.is_some())
    }
}

/// Adds a packet to those that wait, as crates/core/src/early.rs does: of two that begin at the same number the
/// longer one waits.
fn wait(early: &mut Vec<Packet>, packet: Packet) {
    match early.iter_mut().find(|one| one.raw.seq == packet.raw.seq) {
        Some(same) if same.payload.len() >= packet.payload.len() => {}
        Some(same) => *same = packet,
        None => early.push(packet),
    }
}

/// Cuts the text into frames as the agent does. Each request begins a frame, and so does the body of a chunked request.
fn parts(mut text: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let mut reader = Reader::default();
        let begins = text
            .iter()
            .take_while(|&&byte| byte != b' ')
            .all(u8::is_ascii_graphic);
        let has_head = begins && text.iter().any(|&byte| reader.take(byte).is_some());
        let whole = reader.head.bytes as usize + reader.head.length as usize;
        let (request, rest) = text.split_at(if has_head {
            whole.min(text.len())
        } else {
            text.len()
        });
        let body = match has_head && reader.head.is_chunked {
            true => rest
                .iter()
                .position(|&byte| {
                    reader.take(byte);
                    !reader.whole.is_empty()
                })
                .map_or(rest.len(), |last| last + 1),
            false => 0,
        };
        let (body, rest) = rest.split_at(body);
        parts.push(request);
        if !body.is_empty() {
            parts.push(body);
        }
        text = rest;
    }
    parts
}

/// The answer of a server to the request with this number.
fn answer(number: usize, is_head: bool) -> String {
    let (framing, body) = match number % 2 {
        0 => ("Content-Length: 5", "hello"),
        _ => ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
    };
    format!(
        "HTTP/1.1 200 OK\r\n{framing}\r\n\r\n{}",
        if is_head { "" } else { body }
    )
}

fn pick<T>(from: &[T], which: u8) -> Option<usize> {
    (!from.is_empty()).then(|| usize::from(which) % from.len())
}

/// Whether the door and the server's own reading agree where the next request begins, once TCP has the head that was
/// judged last.
fn matches_reader(door: &Door, rcv_nxt: u32, reader: &Reader) -> bool {
    match &reader.state {
        State::Head(head) => head.is_empty() && door.next == rcv_nxt,
        State::Body(left) => door.next == rcv_nxt.wrapping_add(*left as u32),
        _ => !is_before(door.next, rcv_nxt),
    }
}
