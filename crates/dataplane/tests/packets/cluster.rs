//! The cluster that every case runs in: one connection server, three data servers, a few services.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::atomic::{AtomicU32, Ordering},
};

use baton_abi::{
    CHOICES_PER_POOL, DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DataServer, POLICY_CLIENT,
    POLICY_PATH, POLICY_TURN, Pool, SERVICE_DOWN, SERVICE_HOSTS, SERVICE_OWNER, SERVICE_PATHS,
    SERVICE_SPLIT_AT_ACK, Service, ServiceKey, Settings,
};
use baton_wire::{ClusterKey, CookieKey, HashKey, Keys, LccpKey};

/// The cluster address.
pub const CLUSTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);
/// A service with round robin over the three data servers.
pub const WEB: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 80);
/// A service whose server speaks first.
pub const SMTP: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 25);
/// A service that chooses a data server by the client's address.
pub const BY_CLIENT: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 82);
/// A service in which every request may be another data server's. Each case sets its routes.
pub const HTTP: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 83);
pub const HTTP_SERVICE: u16 = 4;
/// A service without any data server.
pub const EMPTY: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 81);

/// The connection server's own address.
pub const CS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Another connection server. A test that needs it tells its node the way there.
pub const OTHER_CS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
pub const SWITCH: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
/// The own address of the data server with this index in the map.
pub const fn ds(index: u16) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, 11u8.wrapping_add(index as u8))
}

pub const CS_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const OTHER_CS_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
pub const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 1, 7];
pub const fn ds_mac(index: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0, 11u8.wrapping_add(index as u8)]
}

/// The interface on which packets of a test run arrive: the loopback of the caller's namespace.
pub const ARRIVES_AT: u32 = 1;
/// The MSS that the SYN-ACK announces: 1500 less 40 bytes of headers, less 100 bytes of LCCP.
pub const MSS: u16 = 1360;
pub const WINDOW_SCALE: u8 = 7;

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER_SECRET: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

/// All keys that are derived from one secret. In these tables all nodes share one key for messages, unless a test
/// gives each two of them a key of their own.
pub struct Secret(pub ClusterKey);

impl Secret {
    pub fn lccp(&self) -> LccpKey {
        self.0.pair(CLUSTER, CLUSTER)
    }

    pub fn cookie(&self) -> CookieKey {
        self.0.cookie()
    }

    pub fn hash_key(&self) -> HashKey {
        self.0.hash_key()
    }
}

/// The secret that the cluster uses.
pub fn key() -> Secret {
    Secret(SECRET.parse().unwrap())
}

/// A secret that the cluster does not use.
pub fn other_key() -> Secret {
    Secret(OTHER_SECRET.parse().unwrap())
}

pub fn keys() -> Keys {
    Keys::only(key().lccp())
}

/// Settings of a node at `address`. The harness sets its clock.
pub fn settings(address: Ipv4Addr, roles: u32) -> Settings {
    Settings {
        cookie_key: [key().cookie().words(), [0, 0]],
        hash_key: key().hash_key().words(),
        hash_seed: key().hash_key().seed(),
        clock_window_ns: 10_000_000_000,
        stray_grace_ns: 3_600_000_000_000,
        address: mapped(address),
        mss: MSS,
        rcv_wscale: WINDOW_SCALE,
        protocol: 253,
        roles: roles as u8,
        interfaces: 1,
        macs: [CS_MAC; 4],
        ..Settings::default()
    }
}

/// Every service with its key, and the cluster address itself (port 0).
pub fn services() -> Vec<(ServiceKey, Service)> {
    let service = |at: SocketAddrV4, id: u16, flags: u32| {
        let service = Service {
            id,
            pool: id,
            flags: flags as u16,
            ..Service::default()
        };
        (ServiceKey::of(at), service)
    };
    vec![
        service(SocketAddrV4::new(CLUSTER, 0), 63, 0),
        service(WEB, 0, 0),
        service(SMTP, 1, SERVICE_SPLIT_AT_ACK),
        service(EMPTY, 2, SERVICE_DOWN),
        service(BY_CLIENT, 3, 0),
        service(
            HTTP,
            HTTP_SERVICE,
            SERVICE_OWNER | SERVICE_PATHS | SERVICE_HOSTS,
        ),
    ]
}

/// Every pool with its index: one for each service, and those that the routes of HTTP lead to. The harness writes
/// their choices: all three data servers, or one each for the last three pools.
pub fn pools() -> Vec<(u16, Pool)> {
    let pool = |index: u16, policy: u32, choices: u32| {
        let pool = Pool {
            id: u64::from(index) + 1,
            first_choice: first_choice(index),
            choices,
            hash_seed: key().hash_key().seed(),
            policy: policy as u8,
            members: [if choices == 0 { 0 } else { 0b111 }, 0, 0, 0],
            ..Pool::default()
        };
        (index, pool)
    };
    let mut pools = vec![
        pool(0, POLICY_TURN, 3),
        pool(1, POLICY_TURN, 3),
        pool(2, POLICY_TURN, 0),
        pool(3, POLICY_CLIENT, 3),
        pool(4, POLICY_TURN, 3),
        pool(5, POLICY_PATH, 3),
    ];
    for index in 0..3 {
        let (at, mut one) = pool(first_pool_of_one() + index, POLICY_TURN, 1);
        one.members[0] = 1 << index;
        pools.push((at, one));
    }
    pools
}

/// The index of the pool that has only the first data server. Each of the next two pools has only one of the others.
pub const fn first_pool_of_one() -> u16 {
    6
}

/// The index of a pool's first choice.
pub fn first_choice(pool: u16) -> u32 {
    u32::from(pool) * 2 * CHOICES_PER_POOL
}

/// A data server on the connection server's LAN.
pub fn data_server(index: u16) -> DataServer {
    DataServer {
        address: mapped(ds(index)),
        mac: ds_mac(index),
        source_mac: CS_MAC,
        ifindex: ARRIVES_AT,
        flags: DATA_SERVER_PRESENT as u8,
        key: key().lccp().words(),
        ..DataServer::default()
    }
}

/// The connection server as its own data server, on a node that has both roles.
pub fn this_node() -> DataServer {
    DataServer {
        address: mapped(CS),
        mac: CS_MAC,
        flags: (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL) as u8,
        ..data_server(0)
    }
}

/// The way from data server 0 to another node of its LAN.
pub fn peer(mac: [u8; 6]) -> DataServer {
    DataServer {
        mac,
        source_mac: ds_mac(0),
        ifindex: ARRIVES_AT,
        flags: DATA_SERVER_PRESENT as u8,
        key: key().lccp().words(),
        ..DataServer::default()
    }
}

pub fn mapped(address: Ipv4Addr) -> [u8; 16] {
    address.to_ipv6_mapped().octets()
}

/// A client's address and port that no other case uses.
pub fn fresh_client() -> SocketAddrV4 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let host = Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 1).to_bits() + number / 60_000);
    SocketAddrV4::new(host, 1024 + (number % 60_000) as u16)
}
