//! The cluster that every case runs in: one connection server, three data servers, a few services.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    sync::atomic::{AtomicU32, Ordering},
};

use baton_abi::{
    CHOICES_PER_SERVICE, DATA_SERVER_PRESENT, DataServer, POLICY_CLIENT, POLICY_TURN,
    SERVICE_SPLIT_AT_ACK, Service, ServiceKey, Settings,
};
use baton_wire::{ClusterKey, Keys};

/// The cluster address.
pub const CLUSTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);
/// Round robin over the three data servers.
pub const WEB: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 80);
/// The server speaks first.
pub const SMTP: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 25);
/// By the client's address.
pub const BY_CLIENT: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 82);
/// Without any data server.
pub const EMPTY: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 81);

/// Own addresses of the nodes.
pub const CS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The data server at an index of the map.
pub const fn ds(index: u16) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, 11u8.wrapping_add(index as u8))
}

pub const CS_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 1, 7];
pub const fn ds_mac(index: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0, 11u8.wrapping_add(index as u8)]
}

/// The interface on which packets of a test run arrive: the loopback of the caller's namespace.
pub const ARRIVES_AT: u32 = 1;
/// What the SYN-ACK announces: 1500 less 40 of headers, less 100 of LCCP.
pub const MSS: u16 = 1360;
pub const WINDOW_SCALE: u8 = 7;

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const OTHER_SECRET: &str = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";

/// The key in use.
pub fn key() -> ClusterKey {
    SECRET.parse().unwrap()
}

/// Another one.
pub fn other_key() -> ClusterKey {
    OTHER_SECRET.parse().unwrap()
}

pub fn keys() -> Keys {
    Keys::only(key().lccp())
}

/// Settings of a node at `address`; its clock is the harness's to set.
pub fn settings(address: Ipv4Addr, roles: u32) -> Settings {
    Settings {
        cookie_key: [key().cookie().words(), [0, 0]],
        lccp_key: [key().lccp().words(), [0, 0]],
        clock_window_ns: 10_000_000_000,
        stray_grace_ns: 3_600_000_000_000,
        address: mapped(address),
        mss: MSS,
        rcv_wscale: WINDOW_SCALE,
        protocol: 253,
        roles: roles as u8,
        ..Settings::default()
    }
}

/// Every service with its key, and the cluster address itself (port 0).
pub fn services() -> Vec<(ServiceKey, Service)> {
    let service = |id: u16, policy: u32, flags: u32, choices: u32| Service {
        id,
        policy: policy as u8,
        flags: flags as u8,
        first_choice: first_choice(id),
        choices,
        hash_seed: 0x5eed,
    };
    vec![
        (
            ServiceKey::of(SocketAddrV4::new(CLUSTER, 0)),
            service(63, POLICY_TURN, 0, 0),
        ),
        (ServiceKey::of(WEB), service(0, POLICY_TURN, 0, 3)),
        (
            ServiceKey::of(SMTP),
            service(1, POLICY_TURN, SERVICE_SPLIT_AT_ACK, 3),
        ),
        (ServiceKey::of(EMPTY), service(2, POLICY_TURN, 0, 0)),
        (ServiceKey::of(BY_CLIENT), service(3, POLICY_CLIENT, 0, 3)),
    ]
}

/// Where the choices of a service begin.
pub fn first_choice(service: u16) -> u32 {
    u32::from(service) * 2 * CHOICES_PER_SERVICE
}

/// A data server on the connection server's LAN.
pub fn data_server(index: u16) -> DataServer {
    DataServer {
        address: mapped(ds(index)),
        mac: ds_mac(index),
        source_mac: CS_MAC,
        ifindex: ARRIVES_AT,
        flags: DATA_SERVER_PRESENT as u8,
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
