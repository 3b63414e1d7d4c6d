//! Packets that are not for a service pass to the kernel, and broken packets for a service are dropped.

use crate::prelude::*;
use etherparse::{EtherType, IpNumber};

#[test]
fn what_is_the_kernels_and_what_is_nobodys() {
    let node = Node::switch();
    let client = Client::fresh();
    let good = client.get(7).frame();
    let other = Segment {
        to: "10.77.0.101:80".parse().unwrap(),
        ..client.get(7)
    };
    let response = Segment {
        from: WEB,
        to: client.address,
        ..client.get(7)
    };
    let udp = ip_packet(IpNumber::UDP, CS, CLUSTER, &[0; 20]);
    let message = to_ds(&forward(&client), node.now(), &client.get(7).packet());
    let tagged = |tags: &[u8]| [&good[..12], tags, &good[12..]].concat();
    let passes: [(&str, Vec<u8>); 12] = [
        ("another address", other.frame()),
        (
            "another port",
            client.get(7).to("10.77.0.100:99".parse().unwrap()).frame(),
        ),
        ("a response", response.frame()),
        ("VLAN", tagged(&[0x81, 0, 0, 10])),
        ("QinQ", tagged(&[0x88, 0xa8, 0, 10, 0x81, 0, 0, 20])),
        ("for another node", patched(good.clone(), 0, &ds_mac(0))),
        ("UDP", ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV4, &udp)),
        ("LCCP, for the daemon to verify", message),
        (
            "ARP",
            ethernet(CLIENT_MAC, CS_MAC, EtherType::ARP, &[0; 28]),
        ),
        (
            "a frame from a switch",
            ethernet(CLIENT_MAC, CS_MAC, EtherType(0x88b5), &good),
        ),
        (
            "a TCP header that lies, for another address",
            patched(other.frame(), TCP + 12, &[0x40]),
        ),
        (
            "a fragment for another address",
            patched(other.frame(), IP + 6, &[0x20, 0]),
        ),
    ];
    let dropped: [(&str, Vec<u8>, Counted<'_>); 3] = [
        ("cut short", good[..IP + 30].to_vec(), &[("bad_ip", 1)]),
        (
            "a TCP header that lies",
            patched(good.clone(), TCP + 12, &[0x40]),
            &[("bad_tcp", 1)],
        ),
        (
            "a fragment",
            patched(good.clone(), IP + 6, &[0x20, 0]),
            &[("fragment", 1)],
        ),
    ];
    for (name, frame) in passes {
        let seen = node.run(&frame);
        seen.expect_of(name, Pass, &[]);
        seen.untouched();
    }
    for (name, frame, counted) in dropped {
        node.run(&frame).expect_of(name, Drop, counted);
    }
}
