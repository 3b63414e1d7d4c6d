//! Three servers, one client, and byte streams between them that are cut, slow, and die anywhere.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use baton_core::Moment;
use baton_wire::Clock;
use eop_protocol::wire::{Decoder, EopKey, Head, Piece, Refused};
use eop_protocol::{Client, ClientOptions, Error, Heard, Server, ServerOptions, Verdict};

pub const SERVERS: u8 = 3;

/// The odds of events, in 1000 at each turn.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    /// The odds that the connection dies.
    pub cut: u64,
    /// The odds that a server goes away or comes back.
    pub flip: u64,
    /// The odds that a request is answered with a redirect.
    pub late: u64,
    /// The odds that a request is redirected without an answer.
    pub early: u64,
}

#[derive(Debug, Default)]
pub struct Outcome {
    /// The requests whose answers the application got, in order.
    pub answered: Vec<u32>,
    /// The requests that the application was told are lost.
    pub lost: Vec<u32>,
    /// How often each request was done.
    pub done: BTreeMap<u32, u32>,
    pub redirects: usize,
    pub redone: usize,
    pub took: Duration,
}

struct Connection {
    server: u8,
    end: Server,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    at_server: Inbox,
    at_client: Inbox,
}

struct Inbox {
    decoder: Decoder,
    head: Option<Head>,
    message: Vec<u8>,
}

pub struct World {
    options: ClientOptions,
    odds: Odds,
    random: u64,
    now: Moment,
    up: [bool; SERVERS as usize],
    client: Client,
    connection: Option<Connection>,
    /// The requests that the application wants an answer to, the oldest first.
    waiting: VecDeque<u32>,
    next: u32,
    pub outcome: Outcome,
}

fn at(server: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, server + 1], 80))
}

fn server_at(place: SocketAddr) -> u8 {
    (0..SERVERS).find(|server| at(*server) == place).unwrap()
}

impl Inbox {
    fn new() -> Self {
        Self {
            decoder: Decoder::new(10_000),
            head: None,
            message: Vec::new(),
        }
    }

    /// The messages that become whole with these bytes.
    fn take(&mut self, bytes: &[u8]) -> Vec<(Head, Vec<u8>)> {
        let (mut rest, mut whole) = (bytes, Vec::new());
        while let Some(piece) = self.decoder.next(&mut rest).unwrap() {
            match piece {
                Piece::Head(head, _) => self.head = Some(head),
                Piece::Data(data) => self.message.extend(data),
                Piece::End => {
                    let message = std::mem::take(&mut self.message);
                    whole.push((self.head.take().unwrap(), message));
                }
            }
        }
        whole
    }
}

impl World {
    pub fn new(options: ClientOptions, odds: Odds, seed: u64) -> Self {
        Self {
            client: Client::new(options.clone(), at(0)),
            options,
            odds,
            random: seed | 1,
            now: Moment::default(),
            up: [true; SERVERS as usize],
            connection: None,
            waiting: VecDeque::new(),
            next: 0,
            outcome: Outcome::default(),
        }
    }

    /// Runs until `requests` requests have an end. At most `window` are under way at the same time.
    pub fn run(mut self, requests: u32, window: usize) -> Outcome {
        let most = u64::from(requests) * 2000 + 100_000;
        for _ in 0..most {
            let ended = self.outcome.answered.len() + self.outcome.lost.len();
            if ended == requests as usize {
                self.outcome.took = self.now.since(Moment::default());
                return self.outcome;
            }
            self.turn(requests, window);
        }
        panic!("stuck: {:?}, waiting for {:?}", self.client, self.waiting);
    }

    fn turn(&mut self, requests: u32, window: usize) {
        self.now = self.now + Duration::from_millis(1);
        if self.chance(self.odds.flip) {
            let server = self.below(SERVERS.into()) as usize;
            self.up[server] = !self.up[server];
            if self
                .connection
                .as_ref()
                .is_some_and(|c| usize::from(c.server) == server)
            {
                self.cut();
            }
            return;
        }
        if self.client.is_moving() {
            return self.connect();
        }
        if self.connection.is_none() {
            // The session has ended without a loss, and another one begins.
            return self.begin_anew();
        }
        if self.chance(self.odds.cut) {
            return self.cut();
        }
        match self.below(3) {
            0 if self.next < requests && self.waiting.len() < window => {
                let id = self.next;
                self.next += 1;
                self.waiting.push_back(id);
                self.send(id);
            }
            1 => self.serve(),
            _ => self.receive(),
        }
    }

    fn connect(&mut self) {
        self.connection = None;
        let server = server_at(self.client.target());
        if !self.up[usize::from(server)] {
            self.now = self.now + Duration::from_secs(1);
            if self.client.handle_unreachable().is_err() {
                self.give_up();
            }
            return;
        }
        let mut bytes = Vec::new();
        let opening = self.client.handle_connected();
        if let Some(hello) = opening.hello {
            bytes.extend(Head::Hello(hello).bytes(0));
        }
        for message in opening.again {
            bytes.extend(Head::normal(message.len() as u32));
            bytes.extend(message);
        }
        let options = ServerOptions {
            key: Some(EopKey::of(&"07".repeat(32).parse().unwrap())),
            redirected_only: false,
        };
        let client = SocketAddr::from(([10, 0, 1, 1], 4000));
        self.connection = Some(Connection {
            server,
            end: Server::new(options, at(server), client),
            to_server: bytes.into(),
            to_client: VecDeque::new(),
            at_server: Inbox::new(),
            at_client: Inbox::new(),
        });
    }

    fn send(&mut self, id: u32) {
        let message = message_of(id);
        self.client.handle_send(&message).unwrap();
        let connection = self.connection.as_mut().unwrap();
        connection
            .to_server
            .extend(Head::normal(message.len() as u32));
        connection.to_server.extend(message);
    }

    /// Delivers some bytes to the server, which does what it was asked.
    fn serve(&mut self) {
        let now = Clock::from_nanos(self.now.since_epoch().as_nanos() as u64);
        let (late, early) = (self.odds.late, self.odds.early);
        let (random, elsewhere) = (self.below(1000), 1 + self.below(2) as u8);
        let count = self.below(200) as usize;
        let connection = self.connection.as_mut().unwrap();
        let bytes = drain(&mut connection.to_server, count);
        for (head, message) in connection.at_server.take(&bytes) {
            match connection.end.handle_message(&head, now) {
                Ok(Heard::Deliver) => {}
                Ok(Heard::Probe) => {
                    connection.to_client.extend(Head::Welcome.bytes(0));
                    continue;
                }
                Ok(Heard::Nothing) => continue,
                // A client that finds servers down for half a minute shows a token that has expired meanwhile.
                Err(Error::Refused(Refused::Expired)) => return self.cut(),
                Err(error) => panic!("{error}"),
            }
            let mut target = (connection.server + elsewhere) % SERVERS;
            if connection.end.fell_back_from() == Some(at(target)) {
                target = (connection.server + SERVERS - elsewhere) % SERVERS;
            }
            if (late..late + early).contains(&random) {
                let head = connection.end.handle_redirect(None, at(target), now);
                connection.to_client.extend(head.unwrap());
                self.outcome.redirects += 1;
                continue;
            }
            let id = u32::from_be_bytes(message[..4].try_into().unwrap());
            assert_eq!(message, message_of(id), "garbled");
            *self.outcome.done.entry(id).or_default() += 1;
            let slen = message.len() as u32;
            if random < late {
                let head = connection.end.handle_redirect(Some(slen), at(target), now);
                connection.to_client.extend(head.unwrap());
                self.outcome.redirects += 1;
            } else {
                connection
                    .to_client
                    .extend(connection.end.handle_send(slen).unwrap());
            }
            connection.to_client.extend(message);
        }
    }

    /// Delivers some bytes to the client.
    fn receive(&mut self) {
        let count = self.below(200) as usize;
        let connection = self.connection.as_mut().unwrap();
        let bytes = drain(&mut connection.to_client, count);
        for (head, message) in connection.at_client.take(&bytes) {
            match self.client.handle_message(&head) {
                Ok(Verdict::Nothing) => {}
                Ok(Verdict::Deliver) => self.deliver(&message),
                Ok(Verdict::Move) => return,
                Ok(Verdict::DeliverAndMove { redo }) => {
                    self.deliver(&message);
                    return self.redo(redo);
                }
                Ok(Verdict::Redo { unanswered }) => return self.redo(unanswered),
                Err(_) => return self.give_up(),
            }
        }
    }

    fn deliver(&mut self, message: &[u8]) {
        let id = u32::from_be_bytes(message[..4].try_into().unwrap());
        assert_eq!(message, message_of(id), "garbled");
        assert_eq!(
            self.waiting.pop_front(),
            Some(id),
            "not the answer that is due"
        );
        self.outcome.answered.push(id);
    }

    /// Handles EREDO: the application sends all requests again that have no answer.
    fn redo(&mut self, unanswered: usize) {
        if unanswered == 0 {
            return;
        }
        assert_eq!(unanswered, self.waiting.len());
        self.outcome.redone += unanswered;
        while self.client.is_moving() {
            self.connect();
        }
        if self.connection.is_some() {
            for id in self.waiting.clone() {
                self.send(id);
            }
        }
    }

    fn cut(&mut self) {
        if self.connection.take().is_some() && self.client.handle_lost().is_err() {
            self.give_up();
        }
    }

    /// Tells the application that its requests are lost, and begins a new session.
    fn give_up(&mut self) {
        self.outcome.lost.extend(self.waiting.drain(..));
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.connection = None;
        let server = self.below(SERVERS.into()) as u8;
        self.client = Client::new(self.options.clone(), at(server));
    }

    fn chance(&mut self, of_1000: u64) -> bool {
        self.below(1000) < of_1000
    }

    /// A random number below `bound`, by xorshift64*.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) % bound
    }
}

fn message_of(id: u32) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.resize(4 + (id as usize * 7) % 61, id as u8);
    message
}

fn drain(bytes: &mut VecDeque<u8>, count: usize) -> Vec<u8> {
    let count = count.min(bytes.len());
    bytes.drain(..count).collect()
}
