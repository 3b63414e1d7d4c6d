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
    let cases: [(&str, Vec<u8>, Verdict, Counted<'_>); 15] = [
        ("another address", other.frame(), Pass, &[]),
        (
            "another port",
            client.get(7).to("10.77.0.100:99".parse().unwrap()).frame(),
            Pass,
            &[],
        ),
        ("a response", response.frame(), Pass, &[]),
        ("VLAN", tagged(&[0x81, 0, 0, 10]), Pass, &[]),
        (
            "QinQ",
            tagged(&[0x88, 0xa8, 0, 10, 0x81, 0, 0, 20]),
            Pass,
            &[],
        ),
        (
            "for another node",
            patched(good.clone(), 0, &ds_mac(0)),
            Pass,
            &[],
        ),
        (
            "UDP",
            ethernet(CLIENT_MAC, CS_MAC, EtherType::IPV4, &udp),
            Pass,
            &[],
        ),
        ("LCCP, for the daemon to verify", message, Pass, &[]),
        (
            "ARP",
            ethernet(CLIENT_MAC, CS_MAC, EtherType::ARP, &[0; 28]),
            Pass,
            &[],
        ),
        (
            "a frame from a switch",
            ethernet(CLIENT_MAC, CS_MAC, EtherType(0x88b5), &good),
            Pass,
            &[],
        ),
        (
            "cut short",
            good[..IP + 30].to_vec(),
            Drop,
            &[("bad_ip", 1)],
        ),
        (
            "a TCP header that lies",
            patched(good.clone(), TCP + 12, &[0x40]),
            Drop,
            &[("bad_tcp", 1)],
        ),
        (
            "the same for another address",
            patched(other.frame(), TCP + 12, &[0x40]),
            Pass,
            &[],
        ),
        (
            "a fragment",
            patched(good.clone(), IP + 6, &[0x20, 0]),
            Drop,
            &[("fragment", 1)],
        ),
        (
            "the same for another address",
            patched(other.frame(), IP + 6, &[0x20, 0]),
            Pass,
            &[],
        ),
    ];
    for (name, frame, verdict, counted) in cases {
        let seen = node.run(&frame);
        seen.check(verdict, counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        if verdict == Pass {
            seen.untouched();
        }
    }
}
