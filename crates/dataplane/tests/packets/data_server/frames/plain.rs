//! Packets of clients as they come from a connection server on the same LAN.

use std::net::{SocketAddrV4, TcpListener};

use etherparse::{EtherType, IpNumber};

use crate::{
    prelude::*,
    table::{self, Case, Out},
};

const NO_SOCKET: Counted<'_> = &[("ds_no_socket", 1)];
const DELIVERED: Counted<'_> = &[("ds_delivered", 1)];

/// A packet without a socket is dropped silently. A data server never sends a RST for a connection that it does not
/// own, but its kernel would. Only what a connection server has passed on goes back: see
/// [`crate::data_server::handover::none`].
#[test]
fn without_a_socket_silence() {
    let _host = own_host();
    without_a_connection(None);
}

#[test]
fn with_a_listener_alone_silence_too() {
    for at in [WEB, SocketAddrV4::new([0, 0, 0, 0].into(), 80)] {
        let _host = own_host();
        without_a_connection(Some(listen(at)));
    }
}

fn without_a_connection(_listener: Option<TcpListener>) {
    let client = Client::fresh();
    let ack = client.later(7, 100, 100);
    let cases = [
        ("SYN", client.syn()),
        ("SYN ACK", client.syn().flags("SA")),
        ("SYN with data", client.syn().payload(GET)),
        ("ACK of a stranger", ack.clone()),
        ("data of a stranger", ack.clone().flags("PA").payload(GET)),
        ("RST", ack.clone().flags("R")),
        ("RST ACK", ack.clone().flags("RA")),
        ("RST for another service", ack.flags("R").to(SMTP)),
    ]
    .map(|(name, packet)| Case {
        name,
        input: packet.frame(),
        verdict: Drop,
        out: Out::Same,
        counted: NO_SOCKET,
    });
    table::run(&Node::ds(), cases.into());
}

#[test]
fn a_connection_gets_its_packets() {
    let _host = own_host();
    let listener = listen(WEB);
    let connection = connect(&listener, WEB);
    let of = |packet: Segment| Segment {
        from: connection.from,
        ..packet
    };
    let ack = of(Client::fresh().later(7, 100, 100));
    let cases = [
        ("ACK", ack.clone()),
        ("data", ack.clone().flags("PA").payload(GET)),
        ("FIN", ack.clone().flags("FA")),
        ("RST", ack.clone().flags("R")),
        ("SYN, which the kernel challenges", ack.clone().flags("S")),
        ("IP options", ack.ip_options([1; 40])),
    ]
    .map(|(name, packet)| Case {
        name,
        input: packet.frame(),
        verdict: Pass,
        out: Out::Same,
        counted: DELIVERED,
    });
    let node = Node::ds();
    table::run(&node, cases.into());

    let mut stranger = of(Client::fresh().later(7, 100, 100));
    stranger.from.set_port(connection.from.port() ^ 1);
    node.run(&stranger.frame()).expect(Drop, NO_SOCKET);
}

/// The last ACK of a connection that the server has closed goes to the connection's TIME_WAIT.
#[test]
fn time_wait_gets_its_packets() {
    let _host = own_host();
    let listener = listen(WEB);
    let connection = connect(&listener, WEB);
    drop(connection.server);
    drop(connection.client);
    let packet = Segment {
        from: connection.from,
        ..Client::fresh().later(7, 100, 100)
    };
    Node::ds()
        .run(&packet.frame())
        .expect(Pass, DELIVERED)
        .untouched();
}

#[test]
fn what_is_not_for_a_service_passes() {
    let client = Client::fresh();
    let ack = client.later(7, 100, 100);
    let to = |address: &str| ack.clone().to(address.parse().unwrap()).frame();
    let raw =
        |ether_type: u16, bytes: &[u8]| ethernet(CS_MAC, ds_mac(0), EtherType(ether_type), bytes);
    let ip = |protocol: u8, payload: &[u8]| {
        let packet = ip_packet(IpNumber(protocol), LOCAL_CLIENT, CLUSTER, payload);
        ethernet(CS_MAC, ds_mac(0), EtherType::IPV4, &packet)
    };
    let response = Segment {
        from: WEB,
        to: client.address,
        ..ack.clone()
    };
    let cases = [
        ("another port", to("10.77.0.100:8080")),
        ("our own address", to("192.0.2.11:22")),
        ("ICMP", ip(1, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0])),
        ("UDP", ip(17, &[0x9c, 0x40, 0, 80, 0, 8, 0, 0])),
        ("protocol 254", ip(254, &[0; 120])),
        ("a response", response.frame()),
        ("ARP", raw(0x0806, &[0; 46])),
        (
            "VLAN",
            raw(0x8100, &[&[0, 5, 8, 0][..], &ack.packet()].concat()),
        ),
    ]
    .map(|(name, input)| Case {
        name,
        input,
        verdict: Pass,
        out: Out::Same,
        counted: &[],
    });
    table::run(&Node::ds(), cases.into());
}

/// A packet from the connection server's own address is treated like any other.
#[test]
fn a_packet_from_a_node_is_like_any_other() {
    let _host = own_host();
    let from = SocketAddrV4::new(CS, 40_000);
    let packet = Segment {
        from,
        ..Client::fresh().later(7, 1, 1)
    };
    Node::ds().run(&packet.frame()).expect(Drop, NO_SOCKET);
}
