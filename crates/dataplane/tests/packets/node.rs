//! One node under test: a program with filled maps, fed one packet at a time.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::Ipv4Addr,
    os::fd::{AsFd as _, OwnedFd},
    sync::Mutex,
    time::Duration,
};

use baton_abi::{
    Counters, DataServer, MaglevSlot, PeerKeys, ROLE_CS, ROLE_DS, ROLE_SWITCH, Ring, ServiceKey,
    Settings, Tcb, TcbKey,
};
use baton_dataplane::{
    ConnectionServer, Dataplane, Options, Routing, Switch, Tallied, counter_name, sys,
};
use baton_wire::{Clock, LccpKey};
use nix::time::{ClockId, clock_gettime};

pub use crate::seen::{Aborted, Counted, Drop, Pass, Redirect, Seen, Tx, Verdict};
use crate::{
    blank::{blank, map_named},
    cluster::{self, ARRIVES_AT, CLIENT_MAC, CS, CS_MAC, SWITCH, ds},
    read::verify_checksums,
    segment::Client,
    sniff::Wire,
};

/// The wall clock at which every case begins: in the middle of a cookie's period, so that none
/// crosses into the next by chance.
const BEGIN: u64 = ((1_767_225_600_123_456_789 >> COOKIE_PERIOD_SHIFT) << COOKIE_PERIOD_SHIFT)
    + (1 << (COOKIE_PERIOD_SHIFT - 1));
const COOKIE_PERIOD_SHIFT: u32 = 38;
/// A cookie is valid for at least this time: 275 s.
pub const COOKIE_PERIOD: Duration = Duration::from_nanos(1 << COOKIE_PERIOD_SHIFT);

/// The number of entries of a TCP table, unless a test asks for another one.
const FLOWS: u32 = 16_384;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Cs,
    Ds,
    Switch,
    Both,
}

impl Role {
    fn is_cs(self) -> bool {
        matches!(self, Self::Cs | Self::Both)
    }

    fn is_ds(self) -> bool {
        matches!(self, Self::Ds | Self::Both)
    }
}

/// What the programs of a node are loaded with.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    role: Role,
    /// Entries of the TCP table.
    flows: u32,
    /// Whether XDP programs take frames in several pieces.
    frags: bool,
}

/// Loaded programs that no test uses at the moment.
struct Loaded {
    kind: Kind,
    plane: Dataplane,
    is_blank: bool,
}

/// Programs that tests have left to others. Loading takes the verifier most of a second, so a test that ends well
/// leaves its programs to the next one.
static LOADED: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

pub struct Node {
    /// This is None only while the node is dropped.
    plane: Option<Dataplane>,
    kind: Kind,
    role: Role,
    /// Whether the maps were blank when the test began. If so, they are emptied when the node is dropped.
    is_fresh: bool,
    /// The values of the counters at the last look.
    looked: RefCell<Counters>,
    /// The greatest number of bytes in a frame's linear part, if a test sets one.
    linear: Cell<Option<usize>>,
}

impl Node {
    /// A connection server with three data servers on its LAN. The maps that `prepare()` does not fill keep what
    /// earlier tests have left in them.
    pub fn cs() -> Self {
        Self::of(Kind::of(Role::Cs))
    }

    /// A connection server with empty maps: nothing is counted, no connection is known, no turn is taken.
    pub fn fresh_cs() -> Self {
        Self::fresh_cs_of(FLOWS)
    }

    /// A connection server with empty maps, and with a TCP table of this size.
    pub fn fresh_cs_of(flows: u32) -> Self {
        let kind = Kind {
            flows,
            ..Kind::of(Role::Cs)
        };
        Self::fresh(kind)
    }

    /// The data server with index 0.
    pub fn ds() -> Self {
        Self::of(Kind::of(Role::Ds))
    }

    /// The data server with index 0, with empty maps.
    pub fn fresh_ds() -> Self {
        Self::fresh(Kind::of(Role::Ds))
    }

    /// A switch whose next hops are three connection servers, each with a third of the places. Elsewhere their
    /// addresses are those of data servers.
    pub fn switch() -> Self {
        let node = Self::of(Kind::of(Role::Switch));
        node.set_places(|at| {
            let server = (at % 3) as u16;
            (server, server)
        });
        node
    }

    /// Sets who has each place now, and who had it before. As in the daemon, `turn` grows whenever `now` changes.
    pub fn set_places(&self, of: impl Fn(u32) -> (u16, u16)) {
        for (at, place) in (0..).zip(self.switch_table().places().unwrap()) {
            let (now, before) = of(at);
            let turn = place.turn + u32::from(now != place.now);
            let place = MaglevSlot { now, before, turn };
            self.switch_table().set_place(at, &place).unwrap();
        }
    }

    /// Data server 0 with its program on an interface of the caller's namespace, where it sees packets
    /// without [`Node::run`].
    pub fn attached_ds(interface: u32) -> Self {
        Self::attached(Kind::of(Role::Ds), interface)
    }

    /// The connection server, which is data server 0 as well.
    pub fn both() -> Self {
        Self::of(Kind::of(Role::Both))
    }

    /// The node of [`Node::both`], with its programs on an interface of the caller's namespace.
    pub fn attached_both(interface: u32) -> Self {
        // The loopback has generic XDP only.
        let kind = Kind {
            frags: false,
            ..Kind::of(Role::Both)
        };
        Self::attached(kind, interface)
    }

    fn of(kind: Kind) -> Self {
        let (plane, _) = take(kind);
        Self::new(kind, plane, false)
    }

    fn fresh(kind: Kind) -> Self {
        let (plane, is_blank) = take(kind);
        if !is_blank {
            blank(&plane);
        }
        Self::new(kind, plane, true)
    }

    fn attached(kind: Kind, interface: u32) -> Self {
        let mut node = Self::fresh(kind);
        let plane = node.plane.as_mut().unwrap();
        plane.attach(&[interface], &kind.options()).unwrap();
        let ways_out = [interface, Wire::interface()];
        let follows = plane.follow_responses(true, &ways_out, &kind.options());
        follows.unwrap();
        node
    }

    fn new(kind: Kind, plane: Dataplane, is_fresh: bool) -> Self {
        let node = Self {
            plane: Some(plane),
            kind,
            role: kind.role,
            is_fresh,
            looked: RefCell::default(),
            linear: Cell::default(),
        };
        node.prepare();
        node.look();
        node
    }

    /// Fills the maps with what every case begins with.
    fn prepare(&self) {
        for (key, _) in self.plane().services().unwrap() {
            self.plane().remove_service(&key).unwrap();
        }
        for (key, service) in cluster::services() {
            self.plane().set_service(&key, &service).unwrap();
        }
        if self.role.is_cs() || self.role.is_ds() {
            for (index, pool) in cluster::pools() {
                self.routing().set_pool(index, &pool).unwrap();
                let only = index.checked_sub(cluster::first_pool_of_one());
                self.set_choices(index, &only.map_or(vec![0, 1, 2], |server| vec![server]));
            }
            self.routing().set_hosts(&[]).unwrap();
            self.routing().set_routes(&[]).unwrap();
        }
        for (index, _) in self.plane().data_servers().unwrap() {
            let none = DataServer::default();
            self.plane().set_data_server(index, &none).unwrap();
        }
        for index in 0..3 {
            let server = cluster::data_server(index);
            self.plane().set_data_server(index, &server).unwrap();
        }
        if self.role.is_ds() {
            for address in [CS, ds(0), ds(1), ds(2)] {
                let none = DataServer::default();
                self.data_server().set_peer(address, &none).unwrap();
            }
            self.data_server().set_senders(&[]).unwrap();
            for service in 0..5 {
                let none = Ring::default();
                self.data_server().set_ring(service, &none).unwrap();
            }
        }
        let (address, roles) = match self.role {
            Role::Cs => (CS, ROLE_CS),
            Role::Ds => (ds(0), ROLE_DS),
            Role::Switch => (SWITCH, ROLE_SWITCH),
            Role::Both => (CS, ROLE_CS | ROLE_DS),
        };
        if self.role == Role::Both {
            let here = cluster::this_node();
            self.plane().set_data_server(0, &here).unwrap();
            self.data_server().set_peer(CS, &here).unwrap();
            self.data_server().set_senders(&[(CS_MAC, CS)]).unwrap();
        }
        self.plane()
            .set_settings(&cluster::settings(address, roles))
            .unwrap();
        self.share(cluster::key().lccp(), None);
        self.set_clock(Clock::from_nanos(BEGIN));
    }

    /// The node's part as a connection server. The node must have that role.
    pub fn connection_server(&self) -> &ConnectionServer {
        self.plane().as_connection_server().unwrap()
    }

    /// The node's part as a data server. The node must have that role.
    pub fn data_server(&self) -> &baton_dataplane::DataServer {
        self.plane().as_data_server().unwrap()
    }

    /// The maps by which the node routes requests. The node must have a role that routes.
    pub fn routing(&self) -> &Routing {
        self.plane().routing().unwrap()
    }

    /// The node's part as a switch. The node must have that role.
    pub fn switch_table(&self) -> &Switch {
        self.plane().as_switch().unwrap()
    }

    pub fn plane(&self) -> &Dataplane {
        self.plane.as_ref().unwrap()
    }

    /// Makes the node share these keys, the previous one behind the current one, with all of 192.0.2.0/24.
    pub fn share(&self, current: LccpKey, previous: Option<LccpKey>) {
        let shared = PeerKeys {
            key: [current.words(), previous.map_or([0; 2], |key| key.words())],
            leads: 1,
            ..PeerKeys::default()
        };
        let all = (0..=255).map(|last| {
            let address = Ipv4Addr::new(192, 0, 2, last);
            let is_cs = (address == CS).into();
            (address, PeerKeys { is_cs, ..shared })
        });
        self.plane().set_peer_keys(&all.collect()).unwrap();
    }

    /// Makes the node share these keys, and nothing with any other node. The flag says whether the other node may
    /// give commands.
    pub fn share_with(&self, others: &[(Ipv4Addr, LccpKey, bool)]) {
        let shared = |key: LccpKey, leads: bool| PeerKeys {
            key: [key.words(), [0; 2]],
            leads: leads.into(),
            ..PeerKeys::default()
        };
        let all = others
            .iter()
            .map(|(address, key, leads)| (*address, shared(*key, *leads)));
        self.plane().set_peer_keys(&all.collect()).unwrap();
    }

    /// Whether this is the node's own address.
    pub fn is_at(&self, address: Ipv4Addr) -> bool {
        self.plane().settings().unwrap().address == cluster::mapped(address)
    }

    /// Makes a data server take whoever sends frames as clients of these tables do for the connection server.
    pub fn know_connection_server(&self) {
        let way = cluster::peer(cluster::CS_MAC);
        self.data_server().set_peer(CS, &way).unwrap();
        self.data_server().set_senders(&[(CLIENT_MAC, CS)]).unwrap();
    }

    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.plane().settings().unwrap();
        change(&mut settings);
        self.plane().set_settings(&settings).unwrap();
    }

    /// Changes the flags of the HTTP service (`enum service_flag`).
    pub fn change_flags(&self, change: impl FnOnce(u32) -> u32) {
        let key = ServiceKey::of(cluster::HTTP);
        let services = self.plane().services().unwrap();
        let found = services.into_iter().find(|(found, _)| *found == key);
        let (_, mut service) = found.unwrap();
        service.flags = change(service.flags.into()) as u16;
        self.plane().set_service(&key, &service).unwrap();
    }

    pub fn set_choices(&self, pool: u16, choices: &[u16]) {
        self.routing()
            .set_choices(cluster::first_choice(pool), choices)
            .unwrap();
    }

    /// Sets the wall clock as the programs see it.
    pub fn set_clock(&self, to: Clock) {
        let offset = to.as_nanos() as i64 - monotonic_clock();
        self.change(|settings| settings.clock_offset_ns = offset);
    }

    /// Moves the wall clock forward.
    pub fn wait(&self, time: Duration) {
        self.change(|settings| settings.clock_offset_ns += time.as_nanos() as i64);
    }

    /// The wall clock as the programs see it.
    pub fn now(&self) -> Clock {
        let offset = self.plane().settings().unwrap().clock_offset_ns;
        Clock::from_nanos((monotonic_clock() + offset) as u64)
    }

    /// From here on XDP programs find at most so many bytes of a frame in its linear part, as with drivers that leave
    /// most of a frame elsewhere. Needs Linux 6.18.
    pub fn set_linear(&self, bytes: usize) {
        self.linear.set(Some(bytes));
    }

    /// Runs one packet. If its checksums are right, the checksums of the frame that comes out must be right as well.
    #[track_caller]
    pub fn run(&self, frame: &[u8]) -> Seen {
        self.run_marked(frame, None)
    }

    /// Runs one packet. If `mark` is given, the program gets the beginning of a `struct __sk_buff` with it as its
    /// context.
    #[track_caller]
    pub fn run_marked(&self, frame: &[u8], mark: Option<u32>) -> Seen {
        let mut context = sk_buff(mark.unwrap_or(0));
        self.look();
        let mut run = |frame: &[u8]| {
            let program = self.data_server().ingress.as_fd();
            let context = mark.is_some().then_some(&mut context[..]);
            sys::run_on_frame(program, frame, context, 1).unwrap()
        };
        let run_xdp = |program: &OwnedFd, frame: &[u8]| {
            let program = program.as_fd();
            match self.linear.get() {
                Some(linear) => {
                    let mut context = xdp_md(linear.min(frame.len()));
                    sys::run_on_frame(program, frame, Some(&mut context), 1).unwrap()
                }
                // What the program leaves in front of the frame is not part of the frame.
                None => sys::run_on_arrival(program, &[], frame, 0).unwrap(),
            }
        };
        let (verdict, frame_after) = match self.role {
            Role::Ds => {
                let outcome = run(frame);
                (verdict_of_ds(outcome.verdict), outcome.frame)
            }
            Role::Cs => {
                let outcome = run_xdp(&self.connection_server().xdp, frame);
                (verdict_of_cs(outcome.verdict), outcome.frame)
            }
            Role::Switch => {
                let outcome = run_xdp(&self.switch_table().xdp, frame);
                (verdict_of_cs(outcome.verdict), outcome.frame)
            }
            // The second program sees what the first one leaves to the kernel.
            Role::Both => {
                let first = run_xdp(&self.connection_server().xdp, frame);
                match verdict_of_cs(first.verdict) {
                    Pass => {
                        let outcome = run(&first.frame);
                        (verdict_of_ds(outcome.verdict), outcome.frame)
                    }
                    verdict => (verdict, first.frame),
                }
            }
        };
        let counted = self.moved();
        let seen = Seen {
            verdict,
            input: frame.to_vec(),
            frame: frame_after,
            counted,
        };
        // A packet that has lost its data keeps the checksum of all its data.
        let is_cut = seen.counted.contains_key("cs_claim_cut");
        if seen.verdict != Drop && !is_cut && verify_checksums(frame).is_ok() {
            verify_checksums(&seen.frame).unwrap_or_else(|error| panic!("{error}\n{seen:?}"));
        }
        seen
    }

    /// The cookie for this client, from the answer to its SYN.
    #[track_caller]
    pub fn cookie(&self, client: &Client) -> u32 {
        let seen = self.run(&client.syn().frame()).expect(Tx, &[("cs_syn", 1)]);
        seen.packet().tcp().unwrap().header.sequence_number
    }

    /// The entry of this client's connection.
    pub fn tcb(&self, client: &Client) -> Option<Tcb> {
        self.connection_server().tcb(&self.tcb_key(client)).unwrap()
    }

    /// Removes the entry of this client's connection, as the sweep does.
    pub fn forget(&self, client: &Client) {
        let entries = map_named(self.plane(), "tcbs");
        let key = self.tcb_key(client);
        libbpf_rs::MapCore::delete(&entries, zerocopy::IntoBytes::as_bytes(&key)).unwrap();
    }

    /// The number of connections that were given to a data server.
    pub fn connections(&self, server: u16) -> u64 {
        let tally = self.routing().tally(Tallied::DataServer(server));
        tally.unwrap().connections
    }

    pub fn tcb_key(&self, client: &Client) -> TcbKey {
        TcbKey::of(client.address, client.service)
    }

    /// Reads the counters. [`Node::moved`] reports what they count from here on.
    pub fn look(&self) {
        *self.looked.borrow_mut() = self.plane().counter_values().unwrap();
    }

    /// The counters that have moved since the last look, and by how much.
    pub fn moved(&self) -> BTreeMap<String, u64> {
        let now = self.plane().counter_values().unwrap();
        let before = self.looked.borrow();
        (0..)
            .zip(before.value.iter().zip(now.value))
            .filter(|(_, (old, new))| **old != *new)
            .map(|(counter, (old, new))| (counter_name(counter), new - old))
            .collect()
    }
}

/// `XDP_*` of `include/uapi/linux/bpf.h`.
fn verdict_of_cs(number: u32) -> Verdict {
    match number {
        0 => Aborted,
        1 => Drop,
        2 => Pass,
        3 => Tx,
        4 => Redirect,
        other => panic!("verdict {other}"),
    }
}

/// `TCX_*` of `include/uapi/linux/bpf.h`.
fn verdict_of_ds(number: u32) -> Verdict {
    match number as i32 {
        2 => Drop,
        -1 => Pass,
        7 => Redirect,
        other => panic!("verdict {other}"),
    }
}

impl std::ops::Drop for Node {
    fn drop(&mut self) {
        let Some(mut plane) = self.plane.take() else {
            return;
        };
        if std::thread::panicking() {
            return;
        }
        plane.release();
        if self.is_fresh {
            blank(&plane);
        }
        LOADED.lock().unwrap().push(Loaded {
            kind: self.kind,
            plane,
            is_blank: self.is_fresh,
        });
    }
}

/// Returns loaded programs, and whether their maps are as the kernel made them.
fn take(kind: Kind) -> (Dataplane, bool) {
    let mut loaded = LOADED.lock().unwrap();
    if let Some(at) = loaded.iter().position(|found| found.kind == kind) {
        let found = loaded.swap_remove(at);
        return (found.plane, found.is_blank);
    }
    drop(loaded);
    let plane = Dataplane::load(&kind.options());
    let plane = plane.expect("loading needs root and a kernel with the kfunc");
    (plane, true)
}

impl Kind {
    fn of(role: Role) -> Self {
        Self {
            role,
            flows: FLOWS,
            frags: true,
        }
    }

    fn options(self) -> Options {
        Options {
            roles: match self.role {
                Role::Cs => ROLE_CS,
                Role::Ds => ROLE_DS,
                Role::Switch => ROLE_SWITCH,
                Role::Both => ROLE_CS | ROLE_DS,
            },
            flows: self.flows,
            kept_requests: 1024,
            xdp: baton_dataplane::XdpChoice::Auto,
            frags: self.frags,
            pins: None,
        }
    }
}

/// The clock that the programs read.
fn monotonic_clock() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).unwrap();
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// `struct xdp_md` of a frame with so many bytes in its linear part.
fn xdp_md(linear: usize) -> [u8; 24] {
    let mut context = [0; 24];
    context[4..8].copy_from_slice(&(linear as u32).to_ne_bytes());
    context[12..16].copy_from_slice(&ARRIVES_AT.to_ne_bytes());
    context
}

/// `struct __sk_buff` up to what a test run lets the caller set; `mark` is its third word.
fn sk_buff(mark: u32) -> [u8; 192] {
    let mut context = [0; 192];
    context[8..12].copy_from_slice(&mark.to_ne_bytes());
    context
}
