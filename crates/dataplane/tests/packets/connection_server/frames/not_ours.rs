//! A packet that is not for a service passes to the kernel, untouched.

use etherparse::{EtherType, IpNumber};

use crate::{
    prelude::*,
    table::{self, Case, Out},
};

#[test]
fn it_passes_untouched() {
    let client = Client::fresh();
    let to = |address: &str| client.get(7).to(address.parse().unwrap()).frame();
    let raw =
        |ether_type: u16, bytes: &[u8]| ethernet(CLIENT_MAC, CS_MAC, EtherType(ether_type), bytes);
    let ip = |protocol: u8, payload: &[u8]| {
        let packet = ip_packet(IpNumber(protocol), *client.address.ip(), CLUSTER, payload);
        ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV4, &packet)
    };
    let get = client.get(7).packet();
    let cases = [
        ("another port", to("10.77.0.100:8080")),
        ("another address", to("10.77.0.101:80")),
        ("our own address", to("192.0.2.1:22")),
        (
            "a SYN for another port",
            client.syn().to("10.77.0.100:443".parse().unwrap()).frame(),
        ),
        (
            "ICMP for the cluster address",
            ip(1, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]),
        ),
        (
            "UDP for the service's port",
            ip(17, &[0x9c, 0x40, 0, 80, 0, 8, 0, 0]),
        ),
        ("SCTP", ip(132, &[0; 40])),
        ("protocol 254", ip(254, &[0; 120])),
        ("GRE", ip(47, &[0; 40])),
        ("an empty IP packet", ip(6 + 100, &[])),
        ("a fragment of UDP", {
            let mut fragment = ip(17, &[0; 64]);
            fragment[20] = 0x20;
            fragment
        }),
        ("ARP", raw(0x0806, &[0; 46])),
        ("IPv6", raw(0x86dd, &ipv6())),
        ("VLAN", raw(0x8100, &[&[0, 5, 8, 0][..], &get].concat())),
        (
            "QinQ",
            raw(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], &get].concat()),
        ),
        ("LLDP", raw(0x88cc, &[0; 60])),
        ("IEEE 802.3 with a length", raw(60, &[0x42; 60])),
        (
            "PPPoE",
            raw(
                0x8864,
                &[&[0x11, 0, 0, 1, 0, 70, 0, 0x21][..], &get].concat(),
            ),
        ),
        (
            "MPLS",
            raw(0x8847, &[&[0, 0, 0x11, 0xff][..], &get].concat()),
        ),
        ("an Ethernet header alone", raw(0x0800, &[])),
        ("half an IP header", raw(0x0800, &get[..19])),
        ("jumbo", raw(0x88b6, &[0; 3000])),
    ]
    .map(|(name, input)| Case {
        name,
        input,
        verdict: Pass,
        out: Out::Same,
        counted: &[],
    });
    table::run(&Node::cs(), cases.into());
}

/// A frame that the LAN floods is for another node, which gets it as well.
#[test]
fn frames_for_other_nodes() {
    let node = Node::cs();
    let client = Client::fresh();
    for frame in [client.syn().frame(), client.get(7).frame()] {
        for other in [
            [2, 0, 0, 0, 0, 2],
            [3, 0, 0, 0, 0, 1],
            [2, 0, 9, 0, 0, 1],
            [0xff; 6],
        ] {
            let flooded = patched(frame.clone(), 0, &other);
            node.run(&flooded).expect(Pass, &[]).untouched();
        }
    }
}

/// An Ethernet frame of the shortest length that a driver may hand up.
#[test]
fn short_frames_of_ip() {
    let node = Node::cs();
    let packet = ip_packet_with_options(IpNumber(17), CS, CLUSTER, &[1; 40], &[0; 8]);
    let frame = ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV4, &packet);
    node.run(&padded(frame, 10)).expect(Pass, &[]).untouched();
}

/// Responses go from the data server straight to the client. A response that comes through the connection server
/// shows a mistake in some node's routes, so it is counted.
#[test]
fn response_bytes_are_counted_and_pass() {
    let node = Node::cs();
    let client = Client::fresh();
    let response = Segment {
        from: WEB,
        to: client.address,
        ..client.get(7)
    };
    let response = response.payload(vec![b'r'; 1000]);
    let bytes = response.packet().len() as u64;
    node.run(&response.frame())
        .expect(Pass, &[("cs_response_bytes", bytes)])
        .untouched();
}

/// Packets for an address without a service, such as that of a removed service, pass untouched.
#[test]
fn a_removed_service_is_the_kernels() {
    let node = Node::cs();
    let key = baton_abi::ServiceKey::of(WEB);
    node.plane().remove_service(&key).unwrap();
    let client = Client::fresh();
    node.run(&client.syn().frame())
        .expect(Pass, &[])
        .untouched();
    node.run(&client.get(7).frame())
        .expect(Pass, &[])
        .untouched();
}

/// TCP over IPv6 to the mapped cluster address.
fn ipv6() -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
    packet.extend([0; 16]);
    packet.extend(crate::cluster::mapped(CLUSTER));
    packet.extend([
        0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0,
    ]);
    packet
}
