//! The connection server under test: the real program, fed one frame at a time.

use std::{
    cell::{OnceCell, RefCell},
    net::SocketAddrV4,
    os::fd::AsFd as _,
    time::Duration,
};

use baton_abi::{
    POLICY_TURN, PeerKeys, Pool as PoolEntry, ROLE_CS, RouteKey, SERVICE_PUNTS, SERVICE_STRICT,
    ServiceKey, Tcb, TcbKey,
};
use baton_dataplane::{
    Dataplane, Options, XdpChoice, counter_name,
    sys::{self, Outcome},
};
use baton_wire::{Clock, Keys, Message, NodePair, decode, encode};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use nix::time::{ClockId, clock_gettime};
use zerocopy::IntoBytes as _;

use crate::{
    blank::map_named,
    cluster::{self, CS, CS_MAC, HTTP, HTTP_SERVICE, ds, ds_mac, keys},
    cookie,
    packet::{ETHERNET_BYTES, Packet, ethernet, ip_header},
    pool::{POOLS, Pool, SERVERS},
    second::Second,
    slow_path::SlowPath,
};

/// Any moment: the wall clock when a run begins.
const BEGIN: u64 = 1_767_225_600_000_000_000;
const LCCP: u8 = 253;
const OUTER_BYTES: usize = ETHERNET_BYTES + 20;

/// What came of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaves {
    Nothing,
    /// To the node's own kernel: the daemon resets the client.
    Up,
    /// The client's packet, as it was, to a data server.
    Plain {
        to: usize,
        packet: Packet,
    },
    /// A message to a data server, with the client's packet inside.
    Message {
        to: usize,
        message: Message,
        packet: Packet,
    },
    /// To the client itself.
    Client(Packet),
}

impl Leaves {
    /// The client's packet that goes on.
    pub fn packet(&self) -> Option<&Packet> {
        match self {
            Self::Plain { packet, .. } | Self::Message { packet, .. } => Some(packet),
            _ => None,
        }
    }
}

pub struct ConnectionServer {
    plane: Dataplane,
    keys: Keys,
    offset: i64,
    turns: MapHandle,
    claims: MapHandle,
    entries: MapHandle,
    slow_path: RefCell<SlowPath>,
    /// Once it was needed.
    second: OnceCell<Second>,
}

impl ConnectionServer {
    pub fn load() -> Self {
        let options = Options {
            roles: ROLE_CS,
            flows: 16_384,
            kept_requests: 1024,
            xdp: XdpChoice::Auto,
            frags: true,
            pins: None,
        };
        let plane = Dataplane::load(&options).expect("loading needs root");
        let [turns, claims, entries] =
            ["turns", "claims", "tcbs"].map(|name| map_named(&plane, name));
        let offset = BEGIN as i64 - coarse_clock();
        let this = Self {
            keys: keys(),
            offset,
            turns,
            claims,
            entries,
            slow_path: RefCell::new(SlowPath::new(plane.punts().unwrap())),
            second: OnceCell::new(),
            plane,
        };
        this.prepare();
        this
    }

    fn prepare(&self) {
        let http = ServiceKey::of(HTTP);
        for (key, mut service) in cluster::services() {
            if key == http {
                service.flags |= (SERVICE_STRICT | SERVICE_PUNTS) as u16;
            }
            self.plane.set_service(&key, &service).unwrap();
        }
        for pool in POOLS {
            let members = pool.members();
            let entry = PoolEntry {
                first_choice: cluster::first_choice(pool.index()),
                choices: members.len() as u32,
                policy: POLICY_TURN as u8,
                members: [members.iter().map(|member| 1 << member).sum(), 0, 0, 0],
                ..PoolEntry::default()
            };
            self.plane.set_pool(pool.index(), &entry).unwrap();
            self.plane.set_choices(entry.first_choice, members).unwrap();
        }
        self.plane.set_hosts(&[]).unwrap();
        let routes = [Pool::A, Pool::B].map(|pool| {
            let path = pool.path().as_bytes();
            let key = RouteKey::of(HTTP_SERVICE, 0, path).unwrap();
            (key, u32::from(pool.index()))
        });
        self.plane.set_routes(&routes).unwrap();
        for index in 0..SERVERS as u16 {
            let server = cluster::data_server(index);
            self.plane.set_data_server(index, &server).unwrap();
        }
        let shared = PeerKeys {
            key: [cluster::key().lccp().words(), [0; 2]],
            leads: 1,
            ..PeerKeys::default()
        };
        let peers = (0..SERVERS as u16).map(|index| (ds(index), shared));
        self.plane.set_peer_keys(&peers.collect()).unwrap();
        let mut settings = cluster::settings(CS, ROLE_CS);
        settings.clock_offset_ns = self.offset;
        settings.data_servers = SERVERS as _;
        self.plane.set_settings(&settings).unwrap();
    }

    /// What one sequence leaves behind must not change the next one. User space reads what it is shown, or nobody does.
    pub fn begin(&self, is_read: bool) {
        let mut slow_path = self.slow_path.borrow_mut();
        slow_path.begin();
        let punts = slow_path.punts();
        if is_read {
            punts.give_sign(Duration::from_secs(3600)).unwrap();
        } else {
            punts.withdraw().unwrap();
        }
        self.refill_claims();
        let zero = 0u64.as_bytes();
        for pool in POOLS {
            let key = u32::from(pool.index());
            self.turns
                .update(key.as_bytes(), zero, MapFlags::ANY)
                .unwrap();
        }
    }

    /// It has asked nobody about connections lately.
    fn refill_claims(&self) {
        let bytes = (self.claims.value_size() as usize).next_multiple_of(8);
        let bytes = bytes * libbpf_rs::num_possible_cpus().unwrap();
        sys::zero_elements(self.claims.as_fd(), 1, bytes).unwrap();
    }

    pub fn now(&self) -> Clock {
        Clock::from_nanos(self.wall_clock())
    }

    fn wall_clock(&self) -> u64 {
        (coarse_clock() + self.offset) as u64
    }

    /// Whether a packet has what only the client that it claims to be of was told, in answer to its SYN.
    pub fn has_cookie(&self, packet: &Packet) -> bool {
        cookie::has_cookie(packet, self.wall_clock())
    }

    /// A client's packet comes.
    pub fn receive(&self, packet: &Packet) -> Leaves {
        self.run(&packet.frame())
    }

    /// What user space lets go of what it has been shown.
    pub fn work(&self) -> Vec<Leaves> {
        let left = self.slow_path.borrow_mut().work();
        left.iter().map(|frame| self.read(frame)).collect()
    }

    /// What user space sends again of a connection.
    pub fn repeat(&self, client: SocketAddrV4) -> Vec<Leaves> {
        let left = self.slow_path.borrow_mut().repeat(client);
        left.iter().map(|frame| self.read(frame)).collect()
    }

    /// What clients were told lately to have come.
    pub fn acknowledged(&self) -> Vec<(SocketAddrV4, u32)> {
        self.slow_path.borrow_mut().acknowledged()
    }

    /// User space hears that all before this sequence number has come to its server.
    pub fn come(&self, client: SocketAddrV4, come: u32) {
        self.slow_path.borrow_mut().come(client, come);
    }

    /// A client's packet comes to the other processor, so much later, while something else happens on this one.
    pub fn receive_meanwhile<T>(
        &self,
        packet: &Packet,
        later: u32,
        here: impl FnOnce() -> T,
    ) -> (T, Leaves) {
        let program = || self.plane.programs().cs.as_ref().unwrap().as_fd();
        let start = || Second::start(program().try_clone_to_owned().unwrap());
        let second = self.second.get_or_init(start);
        let (here, outcome) = second.run(packet.frame(), later, here);
        (here, self.leaves(&outcome))
    }

    /// A data server's message comes.
    pub fn hear(&self, from: usize, message: &Message, packet: &Packet) -> Leaves {
        let pair = NodePair {
            from: ds(from as u16),
            to: CS,
        };
        let body = encode(
            message,
            &packet.bytes(),
            self.now(),
            &self.keys.current,
            pair,
        );
        let ip = [ip_header(pair.from, pair.to, LCCP, body.len()), body].concat();
        self.run(&ethernet(ds_mac(from as u16), CS_MAC, &ip))
    }

    fn run(&self, frame: &[u8]) -> Leaves {
        let program = self.plane.programs().cs.as_ref().unwrap();
        self.leaves(&sys::run_on_arrival(program.as_fd(), &[], frame, 0).unwrap())
    }

    fn leaves(&self, outcome: &Outcome) -> Leaves {
        match outcome.verdict {
            1 => Leaves::Nothing,
            2 => Leaves::Up,
            3 => self.read(&outcome.frame),
            verdict => panic!("verdict {verdict}"),
        }
    }

    fn read(&self, frame: &[u8]) -> Leaves {
        let ip = &frame[ETHERNET_BYTES..];
        let to = (0..SERVERS).find(|&server| frame[..6] == ds_mac(server as u16));
        let Some(to) = to else {
            return Leaves::Client(Packet::read(ip).expect("an answer to a client"));
        };
        if ip[9] != LCCP {
            let packet = Packet::read(ip).expect("a client's packet");
            return Leaves::Plain { to, packet };
        }
        let pair = NodePair {
            from: CS,
            to: ds(to as u16),
        };
        // Clocks are not what this is about, and the machine may be held up.
        let window = Duration::from_secs(3600);
        let received = decode(&frame[OUTER_BYTES..], pair, &self.keys, self.now(), window);
        let received = received.expect("a message as baton-wire reads it");
        Leaves::Message {
            to,
            packet: Packet::read(received.packet).expect("a client's packet in a message"),
            message: received.message,
        }
    }

    /// The entry of a connection, but for the time of its last packet.
    pub fn entry(&self, client: SocketAddrV4) -> Option<Tcb> {
        let found = self.plane.tcb(&TcbKey::of(client, HTTP)).unwrap();
        found.map(|entry| Tcb { seen: 0, ..entry })
    }

    /// A few seconds go by for this connection.
    pub fn age(&self, client: SocketAddrV4) {
        let key = TcbKey::of(client, HTTP);
        if let Some(entry) = self.plane.tcb(&key).unwrap() {
            let seen = entry.seen.wrapping_sub(2);
            self.plane.set_tcb(&key, &Tcb { seen, ..entry }).unwrap();
        }
    }

    pub fn forget(&self, client: SocketAddrV4) {
        // There may be none.
        let _ = self.entries.delete(TcbKey::of(client, HTTP).as_bytes());
    }

    /// Every counter that is not zero.
    pub fn counted(&self) -> Vec<(String, u64)> {
        let values = self.plane.counter_values().unwrap().value;
        (0..)
            .zip(values)
            .filter(|(_, value)| *value > 0)
            .map(|(counter, value)| (counter_name(counter), value))
            .collect()
    }
}

fn coarse_clock() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).unwrap();
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}
