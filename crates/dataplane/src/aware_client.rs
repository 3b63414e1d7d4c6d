//! An aware client sends its packets to the data server of each connection itself, once that data server has said
//! where it is. A client host is no node, and has neither the cluster's configuration nor its key.

use std::{
    mem::MaybeUninit,
    net::{Ipv4Addr, SocketAddrV4},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use baton_abi::{CLIENT_COUNTER_NAMES, ClientCounters, ClientFlow, ClientService, ClientSettings};
use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle,
    skel::{OpenSkel as _, SkelBuilder as _},
};
use zerocopy::IntoBytes as _;

use crate::{
    Error,
    kernel::{Part, messages::collect_messages},
    loading::{
        attach,
        load::{explain, load_error},
        standalone::{OpenGroup, StandalonePins},
    },
    maps::{per_cpu, read},
    sys::{self, Hook},
};

skeleton!(skeleton, "/client.skel.rs");

/// The map of counters.
const COUNTERS: &str = "client_counters";

/// A network of IPv4: an address in it and its mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Network {
    /// Any address of it.
    pub address: Ipv4Addr,
    /// The bits in which all its addresses are alike are ones.
    pub mask: Ipv4Addr,
}

/// What an aware client is told.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Index of the interface by which its packets leave.
    pub interface: u32,
    /// The network at that interface. Its hosts are reached without a router.
    pub lan: Ipv4Network,
    /// Cookie of its network namespace.
    pub netns: u64,
    /// The services that it is aware of, by cluster address and port.
    pub services: Vec<SocketAddrV4>,
    /// The network in which data servers are believed to be. Data servers elsewhere are not believed. With `None` they
    /// may be anywhere.
    pub within: Option<Ipv4Network>,
    /// Seconds of silence on a connection, after which its data server is asked whether it is there; 0: never.
    pub silence: u16,
}

/// The programs of an aware client, loaded but nowhere attached.
pub struct ClientPrograms {
    events: OwnedFd,
    /// The program at tc egress.
    pub way: OwnedFd,
    counters: MapHandle,
    flows: MapHandle,
}

impl ClientPrograms {
    /// Loads the programs, and gives them what `options` say.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::Map`].
    pub fn load(options: &ClientOptions) -> Result<Self, Error> {
        collect_messages();
        let mut storage = MaybeUninit::uninit();
        let loaded = skeleton::ClientSkelBuilder::default()
            .open(&mut storage)
            .and_then(skeleton::OpenClientSkel::load)
            .map_err(|error| explain(&error, &[Part::Client]))?;
        let masked = |network: Ipv4Network| {
            let mask = word(network.mask);
            (word(network.address) & mask, mask)
        };
        let (lan, lan_mask) = masked(options.lan);
        let (within, within_mask) = options.within.map_or((0, 0), masked);
        let settings = ClientSettings {
            netns: options.netns,
            lan,
            lan_mask,
            within,
            within_mask,
            silence: options.silence.into(),
            reserved: 0,
        };
        let failed = |map| {
            move |error: libbpf_rs::Error| Error::Map {
                map,
                reason: error.to_string(),
            }
        };
        let first = 0u32.to_ne_bytes();
        let map = &loaded.maps.client_settings;
        map.update(&first, settings.as_bytes(), MapFlags::ANY)
            .map_err(failed("client_settings"))?;
        for service in &options.services {
            let key = ClientService {
                address: word(*service.ip()),
                be_port: service.port().to_be(),
                reserved: 0,
            };
            let map = &loaded.maps.client_services;
            map.update(key.as_bytes(), &first, MapFlags::ANY)
                .map_err(failed("client_services"))?;
        }
        let handle = |map: &libbpf_rs::MapMut<'_>| MapHandle::try_from(map).map_err(load_error);
        let owned = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map_err(load_error);
        Ok(Self {
            events: owned(loaded.progs.client_events.as_fd())?,
            way: owned(loaded.progs.client_way.as_fd())?,
            counters: handle(&loaded.maps.client_counters)?,
            flows: handle(&loaded.maps.client_flows)?,
        })
    }

    /// Makes the programs act as if the connection's data server had said that it is `server`.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn tell(
        &self,
        client: SocketAddrV4,
        cluster: SocketAddrV4,
        server: Ipv4Addr,
    ) -> Result<(), Error> {
        let flow = ClientFlow {
            client: word(*client.ip()),
            cluster: word(*cluster.ip()),
            be_client_port: client.port().to_be(),
            be_cluster_port: cluster.port().to_be(),
        };
        let told = self
            .flows
            .update(flow.as_bytes(), &server.octets(), MapFlags::ANY);
        told.map_err(|error| Error::Map {
            map: "client_flows",
            reason: error.to_string(),
        })
    }

    /// The value of each counter so far, by name.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counters(&self) -> Result<Vec<(String, u64)>, Error> {
        sums(&self.counters)
    }
}

/// The directory in which the programs and their counters are pinned.
#[derive(Clone, Debug)]
pub struct ClientPins(StandalonePins);

impl ClientPins {
    /// Names a directory in a BPF file system.
    pub const fn at(directory: PathBuf) -> Self {
        Self(StandalonePins::at(directory))
    }

    /// Loads the programs and attaches them, to the sockets of `group`, a directory of cgroup v2, and to the
    /// interface, until [`Self::detach`]. What was attached before is replaced; its connections go by the
    /// connection server again. After an error nothing is attached.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::Pins`], [`Error::Map`], [`Error::AttachGroup`], [`Error::Attach`].
    pub fn attach(&self, group: &Path, options: &ClientOptions) -> Result<(), Error> {
        self.0.prepare()?;
        let programs = ClientPrograms::load(options)?;
        let group = OpenGroup::open(group, "client_events")?;
        // The program at egress is attached first. It acts only on connections that the other program has seen begin.
        let attach = || {
            let way = sys::link_create(programs.way.as_fd(), options.interface, Hook::TcxEgress);
            let way = way.map_err(|cause| Error::Attach {
                program: "client_way",
                interface: options.interface,
                hint: attach::tcx_hint(&cause),
                cause,
            })?;
            self.0.pin(way.as_fd(), "way")?;
            let events =
                group.attach("client_events", programs.events.as_fd(), Hook::SocketEvents)?;
            self.0.pin(events.as_fd(), "events")
        };
        self.0.attach(attach, programs.counters.as_fd())
    }

    /// Takes the programs away; connections go by the connection server again. Safe to do twice.
    ///
    /// # Errors
    /// [`Error::Pins`].
    pub fn detach(&self) -> Result<(), Error> {
        self.0.detach()
    }

    /// The value of each counter since the programs were attached, by name. `None` if they are not attached.
    ///
    /// # Errors
    /// [`Error::Map`], [`Error::Pins`].
    pub fn counters(&self) -> Result<Option<Vec<(String, u64)>>, Error> {
        let counters = self.0.counters(COUNTERS)?;
        counters.as_ref().map(sums).transpose()
    }
}

/// An address as the programs have it, in network byte order.
fn word(address: Ipv4Addr) -> u32 {
    u32::from_ne_bytes(address.octets())
}

/// The counters of all processors together.
fn sums(map: &MapHandle) -> Result<Vec<(String, u64)>, Error> {
    let mut sums = [0u64; size_of::<ClientCounters>() / size_of::<u64>()];
    for value in per_cpu(COUNTERS, map, 0)? {
        let one: ClientCounters = read(COUNTERS, &value)?;
        for (sum, value) in sums.iter_mut().zip(one.value) {
            *sum += value;
        }
    }
    let names = CLIENT_COUNTER_NAMES.iter();
    Ok(names
        .map(|(name, _)| name.to_lowercase())
        .zip(sums)
        .collect())
}
