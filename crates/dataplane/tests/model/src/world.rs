//! One sequence: clients, the connection server, data servers and what is on its way between them; and what must hold
//! after each step.

use std::{
    fmt::Write as _,
    net::{IpAddr, SocketAddr, SocketAddrV4},
};

use baton_wire::{Flow, Keep, Message, ShortAddress, TcbPart, WindowScales};

use crate::{
    cluster::{HTTP, WINDOW_SCALE, ds, fresh_client},
    connection::Connection,
    cs::{ConnectionServer, Leaves},
    data_server::Does,
    packet::{ACK, FIN, PSH, Packet, RST, SYN},
    permitted,
    pool::SERVERS,
    socket::{Response, Taken},
    step::{Step, Trial, What},
};

/// No sequence keeps more messages than this on their way.
const ARRIVALS_MAX: usize = 500;

/// What went wrong, and all that happened before.
#[derive(Debug)]
pub struct Failure {
    pub what: String,
    pub trace: String,
}

/// On its way inside the cluster.
#[derive(Clone, Debug)]
struct Traveller {
    connection: usize,
    /// None: the connection server.
    from: Option<usize>,
    to: Option<usize>,
    /// None: the packet goes by itself.
    message: Option<Message>,
    packet: Packet,
}

pub struct World<'a> {
    pub cs: &'a ConnectionServer,
    pub connections: Vec<Connection>,
    travellers: Vec<Traveller>,
    trace: Option<String>,
    /// The program's counters when the last line of the trace was written, if it shows them.
    counted: Option<Vec<(String, u64)>>,
    /// Whether no message was lost inside the cluster: that ends some connections.
    is_lossless: bool,
}

pub type Checked = Result<(), String>;

/// How much a failure tells of what happened before it.
#[derive(Clone, Copy, PartialEq)]
pub enum Tells {
    Nothing,
    Steps,
    /// And what the program counted in each, which takes long to read.
    Counters,
}

/// Runs a sequence.
pub fn run(cs: &ConnectionServer, trial: &Trial, tells: Tells) -> Result<(), Failure> {
    cs.begin(trial.habits.is_read);
    let mut world = World {
        cs,
        connections: Vec::new(),
        travellers: Vec::new(),
        trace: (tells != Tells::Nothing).then(String::new),
        counted: (tells == Tells::Counters).then(|| cs.counted()),
        is_lossless: true,
    };
    let outcome = world.run(trial);
    for connection in &world.connections {
        cs.forget(connection.client);
    }
    outcome.map_err(|what| Failure {
        what,
        trace: world.trace.unwrap_or_default(),
    })
}

impl World<'_> {
    fn run(&mut self, trial: &Trial) -> Checked {
        for script in &trial.scripts {
            let client = fresh_client();
            let isn = 0xffff_ff00 - u32::from(client.port()) % 512;
            let syn = Packet {
                client,
                seq: isn,
                ack: 0,
                flags: SYN,
                payload: Vec::new(),
            };
            let Leaves::Client(answer) = self.cs.receive(&syn) else {
                return Err("a SYN was not answered".into());
            };
            let first = Packet {
                seq: isn.wrapping_add(1),
                ack: answer.seq.wrapping_add(1),
                ..syn
            };
            if !self.cs.has_cookie(&first) {
                return Err("the model does not know the program's cookies".into());
            }
            self.connections.push(Connection::new(
                client,
                flow(client),
                isn,
                answer.seq,
                script,
                trial.habits,
            ));
        }
        for (number, step) in trial.steps.iter().enumerate() {
            let index = usize::from(step.connection) % self.connections.len();
            self.tell(|_| format!("{number:3} {:?} on connection {index}", step.what));
            self.step(index, step)?;
            if step.settles {
                self.settle()?;
            }
        }
        self.settle()?;
        if self.is_lossless && trial.habits.recovers {
            self.recover(trial.steps.len().is_multiple_of(2))?;
        }
        Ok(())
    }

    fn step(&mut self, index: usize, step: &Step) -> Checked {
        let (a, b) = (usize::from(step.a), usize::from(step.b));
        let connection = &mut self.connections[index];
        match step.what {
            What::Request | What::Piece | What::Across | What::Again | What::Ahead => {
                let Some(packet) = connection.data(step.what, a, b) else {
                    return Ok(());
                };
                self.send(index, packet)
            }
            What::Altered => {
                let Some(mut packet) = connection.data(What::Again, a, b) else {
                    return Ok(());
                };
                connection.alter(&mut packet, b);
                self.send(index, packet)
            }
            What::Old if connection.sent.is_empty() => Ok(()),
            What::Old => {
                let packet = connection.sent[a % connection.sent.len()].clone();
                self.send(index, packet)
            }
            What::Acknowledge => {
                let packet = connection.empty(ACK);
                self.send(index, packet)
            }
            What::End => {
                let packet = connection.empty(ACK | FIN);
                self.send(index, packet)
            }
            What::Hear => {
                connection.hear(a);
                Ok(())
            }
            What::Repeat => self.repeat(index),
            What::Answer => self.answer(index, a, None, false),
            What::Begin => self.answer(index, a, None, true),
            What::AnswerForever => self.answer(index, a, Some(Response::Unknown), false),
            What::Arrive if self.travellers.is_empty() => Ok(()),
            What::Arrive => {
                let traveller = self.travellers.remove(a % self.travellers.len());
                self.arrive(traveller)
            }
            What::Lose | What::Double if self.travellers.is_empty() => Ok(()),
            What::Lose => {
                self.is_lossless = false;
                let lost = self.travellers.remove(a % self.travellers.len());
                self.tell(|world| format!("      lost: {}", world.describe(&lost)));
                Ok(())
            }
            What::Double => {
                let doubled = self.travellers[a % self.travellers.len()].clone();
                self.connections[doubled.connection].note_try(&doubled.packet);
                self.travellers.push(doubled);
                Ok(())
            }
            What::Forget => {
                self.cs.forget(connection.client);
                Ok(())
            }
            What::Forge => self.forge(index, a, b),
            What::Together => self.together(index, a, b),
            What::ForgeNear => {
                let packet = connection.forged_near(a, b);
                self.send(index, packet)
            }
        }
    }

    /// A packet comes to the connection server in the client's name.
    pub fn send(&mut self, index: usize, packet: Packet) -> Checked {
        self.connections[index].note_sent(&packet);
        let leaves = self.cs.receive(&packet);
        let may_be_shown = leaves == Leaves::Nothing;
        self.received(index, &packet, leaves)?;
        if may_be_shown {
            self.work(index)
        } else {
            Ok(())
        }
    }

    /// User space has its turn.
    fn work(&mut self, index: usize) -> Checked {
        let left = self.cs.work();
        self.let_go(index, left)
    }

    /// User space sends what the client of this connection does not send again.
    pub fn repeat(&mut self, index: usize) -> Checked {
        let left = self.cs.repeat(self.connections[index].client);
        self.let_go(index, left)
    }

    /// What user space has let go leaves, and clients hear what it says to them.
    fn let_go(&mut self, index: usize, left: Vec<Leaves>) -> Checked {
        for (client, next) in self.cs.acknowledged() {
            let mut connections = self.connections.iter_mut();
            if let Some(connection) = connections.find(|connection| connection.client == client) {
                connection.note_acknowledged(next);
                self.tell(|_| format!("      user space: has got all before {next}"));
            }
        }
        for leaves in left {
            self.tell(|world| {
                let packet = leaves
                    .packet()
                    .map(|packet| world.connections[index].describe(packet));
                format!(
                    "      user space ==> {} {packet:?}",
                    world.describe_leaves(index, &leaves)
                )
            });
            permitted::user_space(&self.connections[index], &leaves)?;
            self.leave(index, leaves);
        }
        Ok(())
    }

    /// What the connection server has made of something goes its way.
    fn leave(&mut self, index: usize, leaves: Leaves) {
        let (to, message, packet) = match leaves {
            Leaves::Nothing => return,
            Leaves::Up | Leaves::Client(_) => {
                self.connections[index].is_closed = true;
                return;
            }
            Leaves::Plain { to, packet } => (to, None, packet),
            Leaves::Message {
                to,
                message,
                packet,
            } => (to, Some(message), packet),
        };
        self.travellers.push(Traveller {
            connection: index,
            from: None,
            to: Some(to),
            message,
            packet,
        });
    }

    pub fn settle(&mut self) -> Checked {
        for _ in 0..ARRIVALS_MAX {
            if self.travellers.is_empty() {
                return Ok(());
            }
            let first = self.travellers.remove(0);
            self.arrive(first)?;
        }
        Err("messages go round and round".into())
    }

    fn arrive(&mut self, traveller: Traveller) -> Checked {
        let index = traveller.connection;
        self.tell(|world| format!("      arrives: {}", world.describe(&traveller)));
        let Some(server) = traveller.to else {
            let (Some(from), Some(message)) = (traveller.from, &traveller.message) else {
                return Err("a data server sent a bare packet".into());
            };
            let leaves = self.cs.hear(from, message, &traveller.packet);
            return self.heard(&traveller, leaves);
        };
        let connection = &mut self.connections[index];
        let held = &mut connection.held[server];
        let does = match &traveller.message {
            Some(message) => held.hear(message, &traveller.packet, SERVERS as u8),
            None => held.plain(connection.flow, &traveller.packet),
        };
        let mut on = |to, message| {
            self.travellers.push(Traveller {
                from: Some(server),
                to,
                message: Some(message),
                ..traveller.clone()
            });
        };
        match does {
            Does::Nothing => Ok(()),
            Does::Delivered(taken) => self.taken(index, server, &taken),
            Does::DeliveredAndSays(taken, message) => {
                on(None, message);
                self.taken(index, server, &taken)
            }
            Does::Says(message) => {
                on(None, message);
                Ok(())
            }
            Does::Passes(next, message) => {
                on(Some(server_at(next)), message);
                Ok(())
            }
            Does::AsksNext(message) => {
                on(Some((server + 1) % SERVERS), message);
                Ok(())
            }
        }
    }

    /// What came of a data server's message at the connection server.
    fn heard(&mut self, traveller: &Traveller, leaves: Leaves) -> Checked {
        let index = traveller.connection;
        self.tell(|world| format!("      ==> {}", world.describe_leaves(index, &leaves)));
        if let (
            Leaves::Up,
            Some(Message::Begun {
                keep: Keep::Come,
                at,
                ..
            }),
        ) = (&leaves, &traveller.message)
        {
            self.cs.come(self.connections[index].client, *at);
            return self.let_go(index, Vec::new());
        }
        permitted::server(&self.connections[index], &traveller.packet, &leaves)?;
        self.leave(index, leaves);
        // What was brought back may be for user space.
        self.work(index)
    }

    /// A client's packet comes to one processor, while the other one has a data server's message, what user space lets
    /// go, or another packet of the same client.
    fn together(&mut self, index: usize, a: usize, b: usize) -> Checked {
        let later = (a * 37 % 400) as u32;
        let Some(packet) = self.any_packet(index, a) else {
            return Ok(());
        };
        let is_here = |one: &Traveller| one.to.is_none() && one.connection == index;
        let message = self.travellers.iter().position(is_here);
        if let (Some(at), true) = (message, !b.is_multiple_of(3)) {
            let traveller = self.travellers.remove(at);
            let (Some(from), Some(message)) = (traveller.from, &traveller.message) else {
                return Err("a data server sent a bare packet".into());
            };
            self.connections[index].note_sent(&packet);
            self.tell(|world| format!("      arrives: {}, meanwhile:", world.describe(&traveller)));
            let cs = self.cs;
            let (heard, left) =
                cs.receive_meanwhile(&packet, later, || cs.hear(from, message, &traveller.packet));
            self.received(index, &packet, left)?;
            return self.heard(&traveller, heard);
        }
        let Some(other) = self.any_packet(index, b) else {
            return Ok(());
        };
        self.connections[index].note_sent(&other);
        let cs = self.cs;
        if b.is_multiple_of(2) {
            self.connections[index].note_sent(&packet);
            let (first, second) = cs.receive_meanwhile(&packet, later, || cs.receive(&other));
            self.received(index, &other, first)?;
            self.received(index, &packet, second)?;
            return self.work(index);
        }
        let shown = cs.receive(&other);
        self.received(index, &other, shown)?;
        self.connections[index].note_sent(&packet);
        let (left, second) = cs.receive_meanwhile(&packet, later, || cs.work());
        self.let_go(index, left)?;
        self.received(index, &packet, second)?;
        self.work(index)
    }

    /// The next request, what was sent before, or an acknowledgement.
    fn any_packet(&mut self, index: usize, choice: usize) -> Option<Packet> {
        let connection = &mut self.connections[index];
        match choice % 4 {
            0 | 1 => connection.data(What::Request, choice / 4, choice / 16),
            2 => {
                let sent = &connection.sent;
                (!sent.is_empty()).then(|| sent[choice / 4 % sent.len()].clone())
            }
            _ => Some(connection.empty(ACK)),
        }
    }

    fn received(&mut self, index: usize, packet: &Packet, leaves: Leaves) -> Checked {
        self.tell(|world| {
            let sent = world.connections[index].describe(packet);
            format!(
                "      client: {sent}\n      ==> {}",
                world.describe_leaves(index, &leaves)
            )
        });
        permitted::client(&self.connections[index], packet, &leaves)?;
        self.leave(index, leaves);
        Ok(())
    }

    fn taken(&mut self, index: usize, server: usize, taken: &Taken) -> Checked {
        self.tell(|_| format!("      server {server}: {taken:?}"));
        let Taken::Bytes(bytes) = taken else {
            return Ok(());
        };
        self.connections[index].taken(server, bytes.clone())
    }

    /// One of the data servers that has a request writes.
    fn answer(&mut self, index: usize, a: usize, state: Option<Response>, half: bool) -> Checked {
        let connection = &mut self.connections[index];
        for turn in 0..SERVERS {
            let server = (a + turn) % SERVERS;
            if connection.answer(server, a, state, half) {
                self.tell(|_| format!("      server {server} writes"));
                return Ok(());
            }
        }
        Ok(())
    }

    /// A packet of somebody who does not know where the connection is, and all that comes of it.
    fn forge(&mut self, index: usize, a: usize, b: usize) -> Checked {
        self.settle()?;
        let connection = &self.connections[index];
        let client = connection.client;
        let Some(before) = self.cs.entry(client) else {
            return Ok(());
        };
        // What nobody has yet, or anymore, its owner says so of, and that is noted.
        if connection.held[usize::from(before.owner)].socket.is_none() {
            return Ok(());
        }
        let packet = connection.forged(a, b);
        if self.cs.has_cookie(&packet) {
            return Ok(());
        }
        let leaves = self.cs.receive(&packet);
        self.tell(|world| {
            let sent = world.connections[index].describe(&packet);
            format!(
                "      forger: {sent}\n      ==> {}",
                world.describe_leaves(index, &leaves)
            )
        });
        let shown = if leaves == Leaves::Nothing {
            self.cs.work()
        } else {
            Vec::new()
        };
        if !packet.has(SYN) {
            for leaves in std::iter::once(leaves).chain(shown) {
                permitted::forged(&packet, &leaves)?;
                self.leave(index, leaves);
            }
        }
        // What data servers say about it, and what comes of that.
        for round in 0..4 {
            if self.travellers.len() > 1 {
                return Err("a forged packet made two".into());
            }
            let Some(traveller) = self.travellers.pop() else {
                break;
            };
            if round == 3 {
                return Err("a forged packet goes round and round".into());
            }
            self.arrive(traveller)?;
        }
        let after = self.cs.entry(client);
        if after != Some(before) {
            return Err(format!(
                "a forged packet has changed the entry\n  from {before:?}\n  to   {after:?}"
            ));
        }
        Ok(())
    }

    pub fn tell(&mut self, line: impl FnOnce(&Self) -> String) {
        if self.trace.is_some() {
            let line = line(self);
            let moved = self.newly_counted();
            if let Some(trace) = &mut self.trace {
                let _ = writeln!(trace, "{line}{moved}");
            }
        }
    }

    /// What the program has counted since this was asked last.
    fn newly_counted(&mut self) -> String {
        let Some(counted) = &mut self.counted else {
            return String::new();
        };
        let now = self.cs.counted();
        let before = std::mem::replace(counted, now.clone());
        let is_new = |one: &&(String, u64)| !before.contains(one);
        let names: Vec<_> = now.iter().filter(is_new).map(|(name, _)| &**name).collect();
        if names.is_empty() {
            return String::new();
        }
        format!("  ({})", names.join(", "))
    }

    fn describe(&self, traveller: &Traveller) -> String {
        let node =
            |node: Option<usize>| node.map_or("cs".into(), |server| format!("server {server}"));
        let packet = self.connections[traveller.connection].describe(&traveller.packet);
        let name = traveller
            .message
            .as_ref()
            .map_or("plain".into(), describe_message);
        format!(
            "{} -> {}: {name} [{packet}]",
            node(traveller.from),
            node(traveller.to)
        )
    }

    fn describe_leaves(&self, index: usize, leaves: &Leaves) -> String {
        let connection = &self.connections[index];
        match leaves {
            Leaves::Nothing => "dropped".into(),
            Leaves::Up => "up to the daemon".into(),
            Leaves::Plain { to, .. } => format!("server {to}: plain"),
            Leaves::Message { to, message, .. } => {
                format!("server {to}: {}", describe_message(message))
            }
            Leaves::Client(packet) => format!("client: {}", connection.describe(packet)),
        }
    }
}

fn describe_message(message: &Message) -> String {
    match message {
        Message::Adopt { .. } => "ADOPT".into(),
        Message::Forward {
            next,
            attempt,
            is_behind,
            ..
        } => match next {
            Some(next) if *is_behind => format!("FORWARD behind, next {}", server_at(*next)),
            Some(next) => format!("FORWARD next {}", server_at(*next)),
            None => format!("FORWARD attempt {attempt}"),
        },
        Message::Elsewhere { next, tcb, .. } => {
            format!("ELSEWHERE to {} after {}", server_at(*next), tcb.attempt)
        }
        Message::Begins { how, .. } => format!("BEGINS how {how}"),
        Message::Begun { keep, .. } => format!("BEGINS answered {keep:?}"),
        Message::Withheld { keep, .. } => format!("WITHHELD {keep:?}"),
        Message::Keep { keep, .. } => format!("KEEP {keep:?}"),
        Message::None { attempt, .. } => format!("NONE attempt {attempt}"),
        Message::Claim { attempt, .. } => format!("CLAIM attempt {attempt}"),
        Message::Moved { .. } => "MOVED".into(),
        other => format!("{other:?}"),
    }
}

/// The data server with this address.
pub fn server_at(address: ShortAddress) -> usize {
    (0..SERVERS)
        .find(|&server| ShortAddress::try_from(IpAddr::V4(ds(server as u16))) == Ok(address))
        .expect("an address of a data server")
}

fn flow(client: SocketAddrV4) -> Flow {
    Flow::new(SocketAddr::V4(client), SocketAddr::V4(HTTP)).unwrap()
}

/// What the options of these clients amount to.
pub fn linux_tcb() -> TcbPart {
    TcbPart {
        mss: 1460.try_into().unwrap(),
        scales: Some(WindowScales {
            client: 7.try_into().unwrap(),
            cluster: WINDOW_SCALE.try_into().unwrap(),
        }),
        sack: true,
        aware: false,
        attempt: 0,
        cwnd: 0,
        resume: 0,
    }
}

/// The flags of a packet, in letters.
pub fn letters(flags: u8) -> String {
    [(FIN, 'F'), (SYN, 'S'), (RST, 'R'), (PSH, 'P'), (ACK, 'A')]
        .into_iter()
        .filter_map(|(flag, letter)| (flags & flag != 0).then_some(letter))
        .collect()
}
