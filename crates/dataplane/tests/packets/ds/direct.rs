//! Packets that aware clients send here themselves, inside another to this node's own address.

use std::net::{Ipv4Addr, SocketAddrV4};

use baton_abi::{SERVICE_OWNER, Service, ServiceKey};
use etherparse::{EtherType, IpNumber};

use crate::{
    cluster::{CLIENT_MAC, CLUSTER, SMTP, WEB, ds, ds_mac},
    host::{connect, listen, on_own_host},
    node::{Drop, Node, Pass},
    segment::{Client, GET, IP, Segment, ethernet, ip_packet, ip_packet_with_options, patched},
    table::{self, Case, Out},
};

fn framed(packet: &[u8]) -> Vec<u8> {
    ethernet(CLIENT_MAC, ds_mac(0), EtherType::IPV4, packet)
}

/// As the client's agent sends it.
fn wrapped(packet: &[u8], from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    framed(&ip_packet(IpNumber::IPV4, from, to, packet))
}

fn direct(packet: &Segment) -> Vec<u8> {
    wrapped(&packet.packet(), *packet.from.ip(), ds(0))
}

fn of(from: SocketAddrV4) -> Segment {
    Segment {
        from,
        ..Client::fresh().later(7, 100, 100)
    }
}

#[test]
fn a_connection_gets_what_is_inside() {
    on_own_host(|| {
        let listener = listen(WEB);
        let connection = connect(&listener, WEB);
        let ack = of(connection.from);
        let node = Node::ds();
        for packet in [
            ack.clone(),
            ack.clone().flags("PA").payload(GET),
            ack.clone().flags("FA"),
            ack.clone().flags("R"),
            ack.clone().ip_options([1; 40]),
        ] {
            let seen = node.run(&direct(&packet)).expect(Pass, &[("ds_direct", 1)]);
            assert_eq!(seen.frame[IP..], packet.packet());
        }
    });
}

/// Nobody can say more with it than with a packet to the cluster address.
#[test]
fn nothing_else_comes_of_it() {
    on_own_host(|| {
        let listener = listen(WEB);
        let connection = connect(&listener, WEB);
        let (ack, stranger) = (of(connection.from), Client::fresh());
        let data = ack.clone().flags("PA").payload(GET);
        let other = Ipv4Addr::new(198, 51, 100, 66);
        let packet = data.packet();
        let (sender, flags) = (*ack.from.ip(), IP + 20 + 6);
        let refused = &[("ds_direct_refused", 1)][..];
        let silence = &[("ds_no_socket", 1)][..];
        let cases = [
            (
                "in the name of another",
                wrapped(&packet, other, ds(0)),
                refused,
            ),
            ("SYN", direct(&ack.clone().flags("S")), refused),
            ("SYN ACK", direct(&ack.clone().flags("SA")), refused),
            (
                "cut",
                wrapped(&packet[..packet.len() - 1], sender, ds(0)),
                refused,
            ),
            (
                "more behind it",
                wrapped(&[&packet[..], b"x"].concat(), sender, ds(0)),
                refused,
            ),
            (
                "a fragment inside",
                patched(direct(&data), flags, &[0x20, 0]),
                refused,
            ),
            (
                "a TCP header longer than the packet",
                patched(direct(&ack), IP + 20 + 20 + 12, &[0xf0]),
                refused,
            ),
            (
                "a stranger's ACK",
                direct(&stranger.later(7, 100, 100)),
                silence,
            ),
            (
                "a stranger's RST",
                direct(&stranger.later(7, 1, 1).flags("R")),
                silence,
            ),
            ("a stranger's request", direct(&stranger.get(7)), silence),
        ]
        .map(|(name, input, counted)| Case {
            name,
            input,
            verdict: Drop,
            out: Out::Same,
            counted,
        });
        table::run(&Node::ds(), cases.into());
    });
}

/// Where owners route the same holds: another's name is refused, and a stranger gets no answer.
#[test]
fn by_owners_nothing_else_comes_of_it_either() {
    on_own_host(|| {
        let _listener = listen(WEB);
        let node = Node::ds();
        let service = Service {
            flags: SERVICE_OWNER as u16,
            ..Service::default()
        };
        (node.plane().set_service(&ServiceKey::of(WEB), &service)).unwrap();
        let request = Client::fresh().get(7);
        let forged = wrapped(&request.packet(), Ipv4Addr::new(198, 51, 100, 66), ds(0));
        let refused = &[("ds_direct_refused", 1)];
        node.run(&forged).expect(Drop, refused).untouched();
        let silence = &[("ds_direct", 1), ("ds_no_socket", 1)];
        node.run(&direct(&request)).expect(Drop, silence);
    });
}

/// This host may have tunnels of its own.
#[test]
fn what_is_not_for_a_service_passes() {
    let node = Node::ds();
    let client = Client::fresh();
    let ack = client.later(7, 100, 100);
    let sender = *ack.from.ip();
    let elsewhere = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 200), 80);
    let udp = ip_packet(IpNumber::UDP, sender, CLUSTER, &[0; 30]);
    let options = ip_packet_with_options(IpNumber::IPV4, sender, ds(0), &[1; 4], &ack.packet());
    for frame in [
        direct(&ack.clone().to(elsewhere)),
        direct(
            &ack.clone()
                .to(SocketAddrV4::new(CLUSTER, SMTP.port() + 1000)),
        ),
        wrapped(&ack.packet(), sender, ds(1)),
        wrapped(&udp, sender, ds(0)),
        wrapped(&ack.packet()[..30], sender, ds(0)),
        wrapped(&[], sender, ds(0)),
        framed(&options),
    ] {
        node.run(&frame).expect(Pass, &[]).untouched();
    }
}
