//! One node under test: a program with filled maps, fed one packet at a time.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    net::Ipv4Addr,
    os::fd::{AsFd as _, OwnedFd},
    sync::Mutex,
    time::Duration,
};

use baton_abi::{DataServer, Place, ROLE_CS, ROLE_DS, ROLE_SWITCH, Ring, Settings, Tcb, TcbKey};
use baton_dataplane::{Dataplane, Options, Tallied, sys};
use baton_wire::Clock;
use nix::time::{ClockId, clock_gettime};

pub use crate::seen::{Aborted, Counted, Drop, Pass, Redirect, Seen, Tx, Verdict};
use crate::{
    cluster::{self, ARRIVES_AT, CLIENT_MAC, CS, CS_MAC, SWITCH, ds},
    read::verify_checksums,
    segment::Client,
};

/// The wall clock at which every case begins: in the middle of a cookie's period, so that none
/// crosses into the next by chance.
const BEGIN: u64 = ((1_767_225_600_123_456_789 >> COOKIE_PERIOD_SHIFT) << COOKIE_PERIOD_SHIFT)
    + (1 << (COOKIE_PERIOD_SHIFT - 1));
const COOKIE_PERIOD_SHIFT: u32 = 38;
/// How long a cookie is good for at least: 275 s.
pub const COOKIE_PERIOD: Duration = Duration::from_nanos(1 << COOKIE_PERIOD_SHIFT);

/// Entries of a TCP table, where none else is asked for.
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

/// Loading takes the verifier most of a second, so a test that ends well leaves its programs to the
/// next one. Maps that no test looks at from the beginning keep what they hold.
static LOADED: Mutex<Vec<(Role, Dataplane)>> = Mutex::new(Vec::new());

pub struct Node {
    /// None only while it is dropped.
    plane: Option<Dataplane>,
    role: Role,
    shared: bool,
    /// What the counters were when somebody last looked.
    looked: RefCell<Vec<(String, u64)>>,
    /// How long the first piece of a frame is at most.
    linear: Cell<Option<usize>>,
}

impl Node {
    /// A connection server with three data servers on its LAN.
    pub fn cs() -> Self {
        let plane = take(Role::Cs).unwrap_or_else(|| load(&options(Role::Cs)));
        Self::new(Role::Cs, plane, true)
    }

    /// The same with empty maps: nothing counted, no connection known, no turn taken.
    pub fn fresh_cs() -> Self {
        Self::fresh_cs_of(FLOWS)
    }

    /// The same with a TCP table of this size.
    pub fn fresh_cs_of(flows: u32) -> Self {
        let options = Options {
            flows,
            kept_requests: 1024,
            xdp: baton_dataplane::XdpChoice::Auto,
            ..options(Role::Cs)
        };
        Self::new(Role::Cs, load(&options), false)
    }

    /// The data server with index 0.
    pub fn ds() -> Self {
        let plane = take(Role::Ds).unwrap_or_else(|| load(&options(Role::Ds)));
        Self::new(Role::Ds, plane, true)
    }

    /// The same with empty maps.
    pub fn fresh_ds() -> Self {
        Self::new(Role::Ds, load(&options(Role::Ds)), false)
    }

    /// A switch whose next hops are three connection servers, each with a third of the places. They have
    /// the addresses that are data servers' elsewhere.
    pub fn switch() -> Self {
        let plane = take(Role::Switch).unwrap_or_else(|| load(&options(Role::Switch)));
        let node = Self::new(Role::Switch, plane, true);
        node.set_places(|at| {
            let server = (at % 3) as u16;
            (server, server)
        });
        node
    }

    /// Of each place who has it now, and who had it before. As in the daemon, a turn ends with `now`.
    pub fn set_places(&self, of: impl Fn(u32) -> (u16, u16)) {
        for (at, place) in (0..).zip(self.plane().places().unwrap()) {
            let (now, before) = of(at);
            let turn = place.turn + u32::from(now != place.now);
            let place = Place { now, before, turn };
            self.plane().set_place(at, &place).unwrap();
        }
    }

    /// Data server 0 with its program on an interface of the caller's namespace, where it sees packets
    /// without [`Node::run`].
    pub fn attached_ds(interface: u32) -> Self {
        let mut plane = load(&options(Role::Ds));
        plane.attach(&[interface], &options(Role::Ds)).unwrap();
        Self::new(Role::Ds, plane, false)
    }

    /// The connection server, which is data server 0 as well.
    pub fn both() -> Self {
        let plane = take(Role::Both).unwrap_or_else(|| load(&options(Role::Both)));
        Self::new(Role::Both, plane, true)
    }

    /// The same with its programs on an interface of the caller's namespace.
    pub fn attached_both(interface: u32) -> Self {
        // The loopback has generic XDP only.
        let options = Options {
            frags: false,
            ..options(Role::Both)
        };
        let mut plane = load(&options);
        plane.attach(&[interface], &options).unwrap();
        Self::new(Role::Both, plane, false)
    }

    fn new(role: Role, plane: Dataplane, shared: bool) -> Self {
        let node = Self {
            plane: Some(plane),
            role,
            shared,
            looked: RefCell::default(),
            linear: Cell::default(),
        };
        node.prepare();
        node.look();
        node
    }

    /// Fills the maps as every case begins.
    fn prepare(&self) {
        for (key, _) in self.plane().services().unwrap() {
            self.plane().remove_service(&key).unwrap();
        }
        for (key, service) in cluster::services() {
            self.plane().set_service(&key, &service).unwrap();
        }
        if self.role.is_cs() {
            for (index, pool) in cluster::pools() {
                self.plane().set_pool(index, &pool).unwrap();
                let only = index.checked_sub(cluster::first_pool_of_one());
                self.set_choices(index, &only.map_or(vec![0, 1, 2], |server| vec![server]));
            }
            self.plane().set_hosts(&[]).unwrap();
            self.plane().set_routes(&[]).unwrap();
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
                self.plane().set_peer(address, &none).unwrap();
            }
            self.plane().set_senders(&[]).unwrap();
            for service in 0..5 {
                let none = Ring::default();
                self.plane().set_ring(service, &none).unwrap();
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
            self.plane().set_peer(CS, &here).unwrap();
            self.plane().set_senders(&[(CS_MAC, CS)]).unwrap();
        }
        self.plane()
            .set_settings(&cluster::settings(address, roles))
            .unwrap();
        self.set_clock(Clock::from_nanos(BEGIN));
    }

    pub fn plane(&self) -> &Dataplane {
        self.plane.as_ref().unwrap()
    }

    /// Whether this is the node's own address.
    pub fn is_at(&self, address: Ipv4Addr) -> bool {
        self.plane().settings().unwrap().address == cluster::mapped(address)
    }

    /// At a data server: whoever sends frames as clients of these tables do is the connection server.
    pub fn know_connection_server(&self) {
        let way = cluster::peer(cluster::CS_MAC);
        self.plane().set_peer(CS, &way).unwrap();
        self.plane().set_senders(&[(CLIENT_MAC, CS)]).unwrap();
    }

    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut settings = self.plane().settings().unwrap();
        change(&mut settings);
        self.plane().set_settings(&settings).unwrap();
    }

    pub fn set_choices(&self, pool: u16, choices: &[u16]) {
        self.plane()
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

    /// From now on XDP programs find so much of a frame in its linear part, as with drivers that leave most of
    /// it elsewhere. Needs Linux 6.18.
    pub fn set_linear(&self, bytes: usize) {
        self.linear.set(Some(bytes));
    }

    /// One packet. Its checksums, if right before, must be right after.
    #[track_caller]
    pub fn run(&self, frame: &[u8]) -> Seen {
        self.run_marked(frame, None)
    }

    /// One packet with the beginning of a `struct __sk_buff` as its context.
    #[track_caller]
    pub fn run_marked(&self, frame: &[u8], mark: Option<u32>) -> Seen {
        let programs = self.plane().programs();
        let mut context = sk_buff(mark.unwrap_or(0));
        self.look();
        let mut run = |program: &Option<OwnedFd>, frame: &[u8]| {
            let program = program.as_ref().unwrap().as_fd();
            let context = mark.is_some().then_some(&mut context[..]);
            sys::run_on_frame(program, frame, context, 1).unwrap()
        };
        let run_xdp = |program: &Option<OwnedFd>, frame: &[u8]| {
            let program = program.as_ref().unwrap().as_fd();
            let mut context = self
                .linear
                .get()
                .map(|linear| xdp_md(linear.min(frame.len())));
            let context = context.as_mut().map(|context| &mut context[..]);
            sys::run_on_frame(program, frame, context, 1).unwrap()
        };
        let (verdict, frame_after) = match self.role {
            Role::Ds => {
                let outcome = run(&programs.ds, frame);
                (verdict_of_ds(outcome.verdict), outcome.frame)
            }
            Role::Cs => {
                let outcome = run_xdp(&programs.cs, frame);
                (verdict_of_cs(outcome.verdict), outcome.frame)
            }
            Role::Switch => {
                let outcome = run_xdp(&programs.switch, frame);
                (verdict_of_cs(outcome.verdict), outcome.frame)
            }
            // What the first program leaves to the kernel, the second one sees next.
            Role::Both => {
                let first = run_xdp(&programs.cs, frame);
                match verdict_of_cs(first.verdict) {
                    Pass => {
                        let outcome = run(&programs.ds, &first.frame);
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
        if seen.verdict != Drop && verify_checksums(frame).is_ok() {
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
        self.plane().tcb(&self.tcb_key(client)).unwrap()
    }

    /// Connections given to a data server.
    pub fn connections(&self, server: u16) -> u64 {
        let tally = self.plane().tally(Tallied::DataServer(server));
        tally.unwrap().connections
    }

    pub fn tcb_key(&self, client: &Client) -> TcbKey {
        TcbKey::of(client.address, client.service)
    }

    /// Looks at the counters: what moves from now on is new.
    pub fn look(&self) {
        *self.looked.borrow_mut() = self.plane().counters().unwrap();
    }

    /// The counters that have moved since the last look, and by how much.
    pub fn moved(&self) -> BTreeMap<String, u64> {
        let now = self.plane().counters().unwrap();
        let before = self.looked.borrow();
        before
            .iter()
            .zip(now)
            .filter(|((_, old), (_, new))| old != new)
            .map(|((_, old), (name, new))| (name, new - old))
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

/// `TCX_*`, in the same place.
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
        if let Some(plane) = self.plane.take()
            && self.shared
            && !std::thread::panicking()
        {
            LOADED.lock().unwrap().push((self.role, plane));
        }
    }
}

fn take(role: Role) -> Option<Dataplane> {
    let mut loaded = LOADED.lock().unwrap();
    let at = loaded.iter().position(|(found, _)| *found == role)?;
    Some(loaded.swap_remove(at).1)
}

fn load(options: &Options) -> Dataplane {
    Dataplane::load(options).expect("loading needs root and a kernel with the kfunc")
}

fn options(role: Role) -> Options {
    Options {
        roles: match role {
            Role::Cs => ROLE_CS,
            Role::Ds => ROLE_DS,
            Role::Switch => ROLE_SWITCH,
            Role::Both => ROLE_CS | ROLE_DS,
        },
        flows: FLOWS,
        kept_requests: 1024,
        xdp: baton_dataplane::XdpChoice::Auto,
        frags: true,
        pins: None,
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
