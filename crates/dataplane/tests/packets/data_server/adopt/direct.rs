//! Packets that aware clients send to this data server directly, each inside another packet to this node's own address.

use std::{
    io::Write as _,
    net::{Ipv4Addr, SocketAddrV4},
};

use baton_abi::{SERVICE_OWNER, Service, ServiceKey};
use baton_wire::TcbPart;
use etherparse::{EtherType, IpNumber};

use super::window::in_this_namespace;
use crate::{
    data_server::{
        agent::reader::{cut, is_reset, send_in, tell, with_agent},
        door::owner::{
            ELSEWHERE, HERE, end_of, ended, follows, owned, request, told_again, told_moved,
            told_to_adopt,
        },
    },
    prelude::*,
    table::{self, Case, Out},
};

/// Counters of a request that has come directly and is let in.
const LET_IN: Counted<'_> = &[
    ("ds_direct", 1),
    ("ds_door_request", 1),
    ("ds_delivered", 1),
];
const DELIVERED: Counted<'_> = &[("ds_direct", 1), ("ds_delivered", 1)];

fn framed(packet: &[u8]) -> Vec<u8> {
    ethernet(CLIENT_MAC, ds_mac(0), EtherType::IPV4, packet)
}

/// Returns the frame of a packet inside another, as the client's agent sends it.
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
    let _host = own_host();
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
}

/// A packet inside another can do no more than a packet to the cluster address.
#[test]
fn nothing_else_comes_of_it() {
    let _host = own_host();
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
}

/// The same holds for a service with a door: a packet in another client's name is refused, and a stranger gets no
/// answer.
#[test]
fn by_owners_nothing_else_comes_of_it_either() {
    let _host = own_host();
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
}

/// Sends a client's packet directly to this node, over the loopback.
fn send_direct(packet: &Segment) {
    let (from, inside) = (*packet.from.ip(), packet.packet());
    send_ip(ds(0), &ip_packet(IpNumber::IPV4, from, ds(0), &inside));
}

/// Returns the TCP option that tells an aware client this data server's address, with the first bytes of each socket.
fn here() -> [u8; 10] {
    let [a, b, c, d] = ds(0).octets();
    [253, 12, b'B', b'T', b'N', 1, a, b, c, d]
}

/// Returns a connection like that of [`owned`] whose client is aware: it was told where this data server is, and sends
/// directly to it.
fn aware(mut live: Live) -> Live {
    in_this_namespace(&live.node);
    // The connection before this one ends, and its socket sends a segment without data.
    live.has_acks = true;
    live.client = Client::fresh();
    let tcb = TcbPart {
        aware: true,
        ..linux_tcb()
    };
    send(
        &live.node,
        &adopt_with(&live.client, tcb),
        &live.client.get(COOKIE),
    );
    live.stream = accept(&live.listener).0;
    let adopted = &[("ds_adopted", 1), ("ds_door_request", 1), ("ds_told", 1)];
    live.expect(adopted);
    expect_bytes(&live.stream, GET);
    answers(&mut live);
    live
}

/// Has the server answer, and checks that the answer says where this data server is. The client acknowledges it
/// directly to this node.
fn answers(live: &mut Live) {
    (&live.stream).write_all(live.answer).unwrap();
    let response = live.response();
    assert_eq!(response.payload(), live.answer);
    let options = response.segment().options().to_vec();
    let told = options.windows(here().len()).any(|some| some == here());
    assert!(told, "{options:?}");
    send_direct(&live.ack());
    live.expect(DELIVERED);
}

/// Sends a request for data server 1 directly to this node, checks that the connection goes there with it, and returns
/// the request.
#[track_caller]
fn goes_directly(live: &Live) -> Segment {
    let request = request(live, ELSEWHERE);
    send_direct(&request);
    live.expect(&[("ds_direct", 1), ("ds_door_handed_on", 1)]);
    assert!(told_to_adopt(live, &request), "the next one tells it too");
    told_moved(live, &request);
    request
}

#[test]
fn by_owners_a_request_for_another_pool_takes_its_connection_there() {
    let _host = own_host();
    let live = aware(owned());
    goes_directly(&live);
    ended(&live);
    live.nothing_sent();
    assert!(nothing_to_accept(&live.listener));
}

/// A client that does not know yet that its connection has gone still sends to this node, and its packets follow the
/// connection. The connection server, which may not have heard of the handover, is told again, though it did not send
/// these packets.
#[test]
fn by_owners_what_comes_for_one_that_has_gone_follows_it() {
    let _host = own_host();
    let live = aware(owned());
    let request = goes_directly(&live);
    send_direct(&request);
    live.expect(&[("ds_direct", 1), ("ds_door_again", 1)]);
    told_moved(&live, &request);
    told_again(&live, &request, None);
    let ack = request
        .clone()
        .seq(end_of(&request))
        .payload(b"")
        .flags("A");
    for packet in [&ack, &ack.clone().flags("FA"), &ack.clone().flags("R")] {
        send_direct(packet);
        live.expect(&[("ds_direct", 1), ("ds_door_followed", 1)]);
        follows(&live, packet);
    }
    // A packet in another's name does not follow the connection.
    let forged = ip_packet(IpNumber::IPV4, ds(1), ds(0), &ack.packet());
    send_ip(ds(0), &forged);
    live.expect(&[("ds_direct_refused", 1)]);
    live.nothing_sent();
}

/// A body is no request, whatever it says.
#[test]
fn by_owners_a_body_is_no_request() {
    let _host = own_host();
    let live = aware(owned());
    let head = format!(
        "POST /ds1/ HTTP/1.1\r\nHost: 10.77.0.100\r\nContent-Length: {}\r\n\r\n",
        2 * ELSEWHERE.len()
    );
    let head = request(&live, head.as_bytes());
    let first = head.clone().payload(ELSEWHERE).seq(end_of(&head));
    let second = first.clone().seq(end_of(&first));
    send_direct(&head);
    live.expect(LET_IN);
    for packet in [&first, &second, &first] {
        send_direct(packet);
        live.expect(DELIVERED);
    }
    expect_bytes(
        &live.stream,
        &[&head.payload, ELSEWHERE, ELSEWHERE].concat(),
    );
}

/// The agent reads what the door cannot. When the server gets the connection back, its new socket tells the client
/// where it is as well.
#[test]
fn by_owners_the_agent_reads_what_the_door_cannot() {
    let _host = own_host();
    let (live, agent) = with_agent();
    let mut live = aware(live);
    let whole = request(&live, HERE);
    let [first, rest] = cut(&whole, 20);
    send_direct(&first);
    live.expect(&[("ds_direct", 1), ("ds_door_reads", 1), ("ds_told", 1)]);
    ended(&live);
    send_direct(&rest);
    live.expect(DELIVERED);
    let (read, _) = accept(&agent);
    let mut bytes = vec![0; HERE.len()];
    while read.peek(&mut bytes).unwrap() < bytes.len() {}
    tell(&live, &read, &whole, first_pool_of_one());
    send_in(&live, &whole);
    live.expect(&[
        ("ds_adopted", 1),
        ("ds_door_read", 1),
        ("ds_door_request", 1),
        ("ds_told", 1),
    ]);
    is_reset(&read);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
    live.sent += HERE.len();
    live.answers += 1;
    answers(&mut live);
}

/// A packet inside another that is for no service may belong to a tunnel of this host's own.
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
