//! The wires: a bridge with a port for each host, and each host's end.

use std::path::Path;

use crate::error::{Doing, Result};
use crate::file::{BRIDGE, Host, Link};
use crate::netns::Namespace;
use crate::tool;

/// The device that does it, inside its namespace.
const DEVICE: &str = "br0";
/// The one interface of a host.
const INTERFACE: &str = "eth0";

/// An XDP program that does nothing: bpf/pass.bpf.c.
const PASS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pass.bpf.o"));

/// No duplicate address detection: every address is usable at once, none is used twice.
const EVERYWHERE: [(&str, &str); 2] = [
    ("net/ipv6/conf/all/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_dad", "0"),
];
/// A bridge does not look into IP. Where the kernel has br_netfilter, bridges do by default: they drop
/// packets with a wrong IP header, join fragments, and take their time.
const BRIDGE_KNOWS_NO_IP: [(&str, &str); 3] = [
    ("net/bridge/bridge-nf-call-iptables", "0"),
    ("net/bridge/bridge-nf-call-ip6tables", "0"),
    ("net/bridge/bridge-nf-call-arptables", "0"),
];
/// All ports an ordinary program may use, so that one client can hold many connections.
const CLIENT: [(&str, &str); 1] = [("net/ipv4/ip_local_port_range", "1024 65535")];

/// Readies the namespace of the bridge.
pub(crate) fn bridge(bridge: &Namespace) -> Result<()> {
    bridge.sysctl(&EVERYWHERE)?;
    if bridge.within(|| Path::new("/proc/sys/net/bridge").exists())? {
        bridge.sysctl(&BRIDGE_KNOWS_NO_IP)?;
    }
    let bridge = &bridge.name;
    tool::run(&format!("ip -n {bridge} link set dev lo up"))?;
    tool::run(&format!(
        "ip -n {bridge} link add name {DEVICE} type bridge \
         stp_state 0 forward_delay 0 mcast_snooping 0"
    ))?;
    tool::run(&format!("ip -n {bridge} link set dev {DEVICE} up")).map(drop)
}

/// Joins a host to the bridge, its port named after it, and gives it its addresses.
/// `directory`: for files of the host.
pub(crate) fn host(
    bridge: &Namespace,
    namespace: &Namespace,
    host: &Host,
    directory: &Path,
) -> Result<()> {
    namespace.sysctl(&EVERYWHERE)?;
    if !host.is_node() {
        namespace.sysctl(&CLIENT)?;
    }
    let (bridge, inside, port) = (&bridge.name, &namespace.name, &host.name);
    tool::run(&format!(
        "ip -n {bridge} link add name {port} type veth peer name {INTERFACE} netns {inside}"
    ))?;
    if let Some(mtu) = host.link.mtu.map(crate::file::Mtu::bytes) {
        tool::run(&format!("ip -n {bridge} link set dev {port} mtu {mtu}"))?;
        tool::run(&format!(
            "ip -n {inside} link set dev {INTERFACE} mtu {mtu}"
        ))?;
    }
    for address in &host.addresses {
        tool::run(&format!(
            "ip -n {inside} address add {address} dev {INTERFACE}"
        ))?;
    }
    tool::run(&format!(
        "ip -n {bridge} link set dev {port} master {DEVICE} up"
    ))?;
    tool::run(&format!("ip -n {inside} link set dev lo up"))?;
    tool::run(&format!("ip -n {inside} link set dev {INTERFACE} up"))?;
    if host.has_xdp() {
        ready_for_xdp(bridge, port.as_str(), directory)?;
    }
    shape(bridge, port.as_str(), &host.link)?;
    shape(inside, INTERFACE, &host.link)
}

/// How a veth is made to treat XDP like a network card does, on the bridge's side
/// (drivers/net/veth.c):
///
/// - What `XDP_TX` sends lies in the peer's ring until something wakes the peer, and the sender does
///   so only if the peer has a program as well. GRO, which also makes it poll, is not enough.
/// - XDP knows no pending checksum (`CHECKSUM_PARTIAL`). So what goes to such a host is summed at this
///   port, its last step inside the kernel's stack.
fn ready_for_xdp(bridge: &str, port: &str, directory: &Path) -> Result<()> {
    let object = directory.join("pass.bpf.o");
    std::fs::write(&object, PASS).doing(|| format!("write {}", object.display()))?;
    let object = object.display();
    in_namespace(
        bridge,
        &format!("ip link set dev {port} xdpdrv obj {object} sec xdp"),
    )?;
    in_namespace(bridge, &format!("ethtool -K {port} tx off"))
}

/// A limit of rate on what leaves by an interface.
fn shape(namespace: &str, interface: &str, link: &Link) -> Result<()> {
    let Some(rate) = link.rate.map(crate::file::Rate::bits) else {
        return Ok(());
    };
    // A burst holds one GSO packet or 4 ms, whichever is more; the queue 20 ms, and never less
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

/// Whether each packet of a link crosses it alone, or up to 64 KiB of a stream at once (GSO, and GRO
/// at the port of a connection server). The latter is many times faster; the former is what a loss of
/// single packets needs.
pub(crate) fn single_packets(
    bridge: &Namespace,
    hosts: &[(Namespace, Host)],
    single: bool,
) -> Result<()> {
    let merge = if single { "off" } else { "on" };
    for (namespace, host) in hosts {
        if host.has_xdp() {
            // A veth whose peer has an XDP program has neither TSO nor GSO to turn off.
            let collect = format!("ethtool -K {} gro {merge}", host.name);
            in_namespace(&bridge.name, &collect)?;
        } else {
            let segment = format!("ethtool -K {INTERFACE} tso {merge} gso {merge}");
            in_namespace(&namespace.name, &segment)?;
        }
    }
    Ok(())
}

/// The name the lab gives the bridge, where a host's name is asked for.
pub(crate) fn is_bridge(host: &str) -> bool {
    host == BRIDGE
}

fn in_namespace(namespace: &str, line: &str) -> Result<()> {
    tool::run(&format!("nsenter --net=/run/netns/{namespace} -- {line}")).map(drop)
}
