//! The wires: a bridge for each LAN with a port for each host on it, and the hosts' ends.

use std::path::Path;

use crate::error::{Doing, Result};
use crate::file::{Host, HostAddress, LanName, Link};
use crate::netns::Namespace;
use crate::tool;

/// The bridge of hosts that name no LAN, inside the bridges' namespace.
const DEVICE: &str = "br0";
/// The first interface of a host.
const INTERFACE: &str = "eth0";
/// The interface's name while it is between two namespaces. No port has it, because no host's name has a dot.
const PARKED: &str = "eth0.parked";

/// An XDP program that does nothing: bpf/pass.bpf.c.
const PASS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pass.bpf.o"));

/// Settings of every namespace: no duplicate address detection, so that every address is usable at once. The
/// lab file gives no address twice.
const EVERYWHERE: [(&str, &str); 2] = [
    ("net/ipv6/conf/all/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
];
/// Settings with which a bridge does not look into IP. Where the kernel has br_netfilter, bridges do so by
/// default: they drop packets with a wrong IP header, join fragments, and are slower.
const BRIDGE_KNOWS_NO_IP: [(&str, &str); 3] = [
    ("net/bridge/bridge-nf-call-iptables", "0"),
    ("net/bridge/bridge-nf-call-ip6tables", "0"),
    ("net/bridge/bridge-nf-call-arptables", "0"),
];
/// Settings of a client: it may use all unprivileged ports, so that it can hold many connections.
const CLIENT: [(&str, &str); 1] = [("net/ipv4/ip_local_port_range", "1024 65535")];

/// Settings of a router: it forwards packets.
const ROUTER: [(&str, &str); 2] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/ipv6/conf/all/forwarding", "1"),
];

/// Prepares the namespace of the bridges. It has one bridge for each of these LANs, and one for hosts that
/// name no LAN.
pub(crate) fn bridge(bridge: &Namespace, lans: &[&LanName]) -> Result<()> {
    bridge.sysctl(&EVERYWHERE)?;
    if bridge.within(|| Path::new("/proc/sys/net/bridge").exists())? {
        bridge.sysctl(&BRIDGE_KNOWS_NO_IP)?;
    }
    let bridge = &bridge.name;
    tool::run(&format!("ip -n {bridge} link set dev lo up"))?;
    let named = lans.iter().map(|lan| device(Some(lan)));
    for device in named.chain([device(None)]) {
        tool::run(&format!(
            "ip -n {bridge} link add name {device} type bridge \
             stp_state 0 forward_delay 0 mcast_snooping 0"
        ))?;
        tool::run(&format!("ip -n {bridge} link set dev {device} up"))?;
    }
    Ok(())
}

/// The name of a LAN's bridge. That of a named LAN has a dot, unlike names of hosts, so no host's port has it.
fn device(lan: Option<&LanName>) -> String {
    lan.map_or(DEVICE.to_owned(), |lan| format!("lan.{lan}"))
}

/// Joins a host to the bridges by a port of the host's name, and gives it its addresses. `directory` is
/// where files of the host are written.
pub(crate) fn host(
    bridge_namespace: &Namespace,
    namespace: &Namespace,
    host: &Host,
    directory: &Path,
) -> Result<()> {
    prepare(namespace, host)?;
    let (bridge, inside, port) = (&bridge_namespace.name, &namespace.name, &host.name);
    tool::run(&format!("ip -n {inside} link set dev lo up"))?;
    plug_in(bridge_namespace, namespace, host)?;
    for (number, further) in (1..).zip(&host.ports) {
        let (port, interface) = (port_of(host, number), format!("eth{number}"));
        cable(bridge, inside, (port.as_str(), interface.as_str()))?;
        in_bridge(bridge, port.as_str(), further.lan.as_ref())?;
        give(inside, &interface, &further.addresses)?;
    }
    if host.is_router() {
        namespace.sysctl(&ROUTER)?;
    }
    if host.has_xdp() {
        for port in ports_of(host) {
            ready_for_xdp(bridge, &port, directory)?;
        }
    }
    shape(bridge, port.as_str(), &host.link)?;
    dress(namespace, host)
}

/// Sets a host's kernel parameters. This must come before the host has an interface, because a new
/// interface takes them over.
pub(crate) fn prepare(namespace: &Namespace, host: &Host) -> Result<()> {
    namespace.sysctl(&EVERYWHERE)?;
    if host.is_node() {
        return Ok(());
    }
    namespace.sysctl(&CLIENT)
}

/// Gives a host's first interface what it gets when the host starts: addresses, default route and rate.
pub(crate) fn dress(namespace: &Namespace, host: &Host) -> Result<()> {
    let inside = &namespace.name;
    tool::run(&format!("ip -n {inside} link set dev lo up"))?;
    give(inside, INTERFACE, &host.addresses)?;
    if let Some(gateway) = host.gateway {
        tool::run(&format!("ip -n {inside} route add default via {gateway}"))?;
    }
    shape(inside, INTERFACE, &host.link)
}

/// The names of the bridges' ports for all interfaces of a host.
fn ports_of(host: &Host) -> Vec<String> {
    let further = (1..=host.ports.len()).map(|number| port_of(host, number));
    std::iter::once(host.name.to_string())
        .chain(further)
        .collect()
}

/// The name of the port for a further interface of a host. Interface names have 15 bytes at most (`IFNAMSIZ`).
fn port_of(host: &Host, number: usize) -> String {
    let name = host.name.as_str();
    let short = name.get(..name.len().min(12)).unwrap_or(name);
    format!("{short}.{number}")
}

/// Makes a cable (veth) from `port` in the bridges' namespace to `interface` in the host's.
fn cable(bridge: &str, inside: &str, (port, interface): (&str, &str)) -> Result<()> {
    tool::run(&format!(
        "ip -n {bridge} link add name {port} type veth peer name {interface} netns {inside}"
    ))
    .map(drop)
}

/// Makes one end of a cable a port of the bridge of a LAN.
fn in_bridge(bridge: &str, port: &str, lan: Option<&LanName>) -> Result<()> {
    let device = device(lan);
    tool::run(&format!(
        "ip -n {bridge} link set dev {port} master {device} up"
    ))
    .map(drop)
}

/// Gives the host's end of a cable its addresses, and sets it up.
fn give(inside: &str, interface: &str, addresses: &[HostAddress]) -> Result<()> {
    for address in addresses {
        tool::run(&format!(
            "ip -n {inside} address add {address} dev {interface}"
        ))?;
    }
    tool::run(&format!("ip -n {inside} link set dev {interface} up")).map(drop)
}

/// Plugs the cables of a host into their ports, or pulls them out.
pub(crate) fn carrier(bridge: &Namespace, host: &Host, is_in: bool) -> Result<()> {
    let state = if is_in { "up" } else { "down" };
    let bridge = &bridge.name;
    for port in ports_of(host) {
        tool::run(&format!("ip -n {bridge} link set dev {port} {state}"))?;
    }
    Ok(())
}

/// Takes a host's interface out of its namespace before the namespace is removed. The interface keeps its
/// MAC address and its port, and loses addresses, routes and queues.
pub(crate) fn park(bridge: &Namespace, inside: &Namespace) -> Result<()> {
    let (bridge, inside) = (&bridge.name, &inside.name);
    tool::run(&format!(
        "ip -n {inside} link set dev {INTERFACE} down netns {bridge} name {PARKED}"
    ))
    .map(drop)
}

/// Puts an interface that [`park`] took out into the host's next namespace.
pub(crate) fn take_back(bridge: &Namespace, inside: &Namespace) -> Result<()> {
    let (bridge, inside) = (&bridge.name, &inside.name);
    tool::run(&format!(
        "ip -n {bridge} link set dev {PARKED} netns {inside} name {INTERFACE}"
    ))
    .map(drop)
}

/// Removes a host's first interface, with its port.
pub(crate) fn remove(bridge: &Namespace, port: &str) -> Result<()> {
    tool::run(&format!("ip -n {} link del dev {port}", bridge.name)).map(drop)
}

/// Gives a host another first interface, set up as [`host`] set up the one before.
pub(crate) fn insert(
    bridge: &Namespace,
    namespace: &Namespace,
    host: &Host,
    directory: &Path,
) -> Result<()> {
    plug_in(bridge, namespace, host)?;
    let (bridge, port) = (&bridge.name, host.name.as_str());
    if host.has_xdp() {
        ready_for_xdp(bridge, port, directory)?;
    }
    shape(bridge, port, &host.link)?;
    dress(namespace, host)
}

/// Makes the cable of a host's first interface, and plugs it into the bridge.
fn plug_in(bridge: &Namespace, namespace: &Namespace, host: &Host) -> Result<()> {
    let (bridge, inside, port) = (&bridge.name, &namespace.name, &host.name);
    cable(bridge, inside, (port.as_str(), INTERFACE))?;
    if let Some(mtu) = host.link.mtu.map(crate::file::Mtu::bytes) {
        tool::run(&format!("ip -n {bridge} link set dev {port} mtu {mtu}"))?;
        tool::run(&format!(
            "ip -n {inside} link set dev {INTERFACE} mtu {mtu}"
        ))?;
    }
    in_bridge(bridge, port.as_str(), host.lan.as_ref())
}

/// Makes a device of the bridge send packets as they are on a wire: none longer than the MTU, each with
/// its checksum.
pub(crate) fn plain(bridge: &Namespace, device: &str) -> Result<()> {
    in_namespace(
        &bridge.name,
        &format!("ethtool -K {device} tx off tso off gso off"),
    )
}

/// Joins a device to the bridge of a host's LAN as a port to which the bridge floods nothing, and from
/// which it learns no MAC address.
pub(crate) fn silent_port(bridge: &Namespace, device: &str, host: &Host) -> Result<()> {
    let bridge = &bridge.name;
    in_bridge(bridge, device, host.lan.as_ref())?;
    tool::run(&format!(
        "ip -n {bridge} link set dev {device} type bridge_slave \
         learning off flood off mcast_flood off bcast_flood off"
    ))
    .map(drop)
}

/// Makes a veth treat XDP like a network card does, by two settings on the bridge's side
/// (drivers/net/veth.c):
///
/// - A packet sent by `XDP_TX` lies in the peer's ring until something wakes the peer. The sender does
///   so only if the peer has a program as well. GRO, which also makes the peer poll, is not enough.
/// - XDP knows no pending checksum (`CHECKSUM_PARTIAL`). So the checksum of packets to such a host is
///   completed at this port, the last step inside the kernel's stack.
fn ready_for_xdp(bridge: &str, port: &str, directory: &Path) -> Result<()> {
    let object = directory.join("pass.bpf.o");
    std::fs::write(&object, PASS).doing(|| format!("write {}", object.display()))?;
    let object = object.display();
    in_namespace(
        bridge,
        &format!("ip link set dev {port} xdpdrv obj {object} sec xdp.frags"),
    )?;
    in_namespace(bridge, &format!("ethtool -K {port} tx off"))
}

/// Limits the rate of what leaves by an interface.
fn shape(namespace: &str, interface: &str, link: &Link) -> Result<()> {
    let Some(rate) = link.rate.map(crate::file::Rate::bits) else {
        return Ok(());
    };
    // A burst holds one GSO packet or 4 ms, whichever is more. The queue holds 20 ms, and never less
    // than two bursts.
    let burst = (rate / 8 / 250).max(65_536 + 4_096);
    let queue = (rate / 8 / 50).max(2 * burst);
    in_namespace(
        namespace,
        &format!(
            "tc qdisc replace dev {interface} root tbf rate {rate} burst {burst} limit {queue}"
        ),
    )
}

/// Makes each packet cross the links alone, so that single packets can be lost. Otherwise up to 64 KiB of a stream
/// cross at once (GSO, and GRO at the port of a connection server), which is many times faster.
pub(crate) fn single_packets(bridge: &Namespace, hosts: &[(Namespace, Host)]) -> Result<()> {
    for (namespace, host) in hosts {
        if host.has_xdp() {
            // A veth whose peer has an XDP program has neither TSO nor GSO to turn off.
            for port in ports_of(host) {
                in_namespace(&bridge.name, &format!("ethtool -K {port} gro off"))?;
            }
        } else {
            for interface in host.interfaces() {
                let segment = format!("ethtool -K {interface} tso off gso off");
                in_namespace(&namespace.name, &segment)?;
            }
        }
    }
    Ok(())
}

fn in_namespace(namespace: &str, line: &str) -> Result<()> {
    tool::run(&format!("nsenter --net=/run/netns/{namespace} -- {line}")).map(drop)
}
