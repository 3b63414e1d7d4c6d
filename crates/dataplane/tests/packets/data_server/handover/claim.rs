//! CLAIM: a connection server asks which data server has a connection.

use std::io::{ErrorKind, Read as _};

use baton_abi::{DataServer, LCCP_FLAG_HEADERS, Ring, short_address};
use baton_wire::{Message, TcbPart};

use crate::{
    data_server::door::{
        owner::{ELSEWHERE, LET_IN, ended, goes_with, owned, request, told_again, told_moved},
        owner_ends::{POST, kill_next},
    },
    prelude::*,
};

const CLAIMED: Counted<'_> = &[("ds_claimed", 1)];
const PASSED_ON: Counted<'_> = &[("ds_claim_passed_on", 1)];
const UNCLAIMED: Counted<'_> = &[("ds_unclaimed", 1)];
const NO_WAY: Counted<'_> = &[("ds_no_way", 1)];

/// Puts the node into a ring of three data servers, in which data server 1 is the next one.
fn in_ring(node: &Node) {
    node.data_server().set_peer(CS, &peer(CS_MAC)).unwrap();
    node.data_server()
        .set_peer(ds(1), &peer(ds_mac(1)))
        .unwrap();
    ring(node, ds(1), 3);
}

fn ring(node: &Node, next: std::net::Ipv4Addr, length: u16) {
    let next = short_address(next);
    node.data_server()
        .set_ring(
            0,
            &Ring {
                next,
                length,
                missing: 0,
            },
        )
        .unwrap();
}

/// A packet that the door has to judge goes back to the connection server with the answer, and comes again from there.
#[test]
fn who_has_it_says_so_and_lets_nothing_in_unjudged() {
    let _host = own_host();
    let live = Live::answered();
    in_ring(&live.node);
    way_out(&live);
    for packet in [live.ack(), live.request()] {
        send(&live.node, &claim(&live.client, 0), &packet);
        live.expect(CLAIMED);
        assert_eq!(moved(&live, &packet), linux_tcb());
    }
    live.stream.set_nonblocking(true).unwrap();
    let error = (&live.stream).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
}

/// MOVED says of a connection what its ADOPT said, whatever options the client has.
#[test]
fn of_every_kind_of_client() {
    let bare = TcbPart {
        mss: 536.try_into().unwrap(),
        scales: None,
        sack: false,
        ..linux_tcb()
    };
    let scaled = TcbPart {
        scales: Some(baton_wire::WindowScales {
            client: 14.try_into().unwrap(),
            cluster: 0.try_into().unwrap(),
        }),
        sack: false,
        mss: 8960.try_into().unwrap(),
        ..linux_tcb()
    };
    for tcb in [linux_tcb(), bare, scaled] {
        let _host = own_host();
        let mut live = Live::answered();
        in_ring(&live.node);
        way_out(&live);
        let client = Client::fresh();
        let mut message = adopt(&client);
        if let Message::Adopt { tcb: part, .. } = &mut message {
            *part = tcb;
        }
        send(&live.node, &message, &client.get(COOKIE));
        let (stream, _) = accept(&live.listener);
        live.expect(ADOPTED);
        (live.client, live.stream) = (client, stream);
        let next = client
            .later(COOKIE, GET.len(), 0)
            .flags("PA")
            .payload("more");
        send(&live.node, &claim(&client, 2), &next);
        live.expect(CLAIMED);
        assert_eq!(moved(&live, &next), tcb);
    }
}

/// FIN, retransmitted data, and data ahead of its turn are the connection's as well.
#[test]
fn whatever_is_of_the_connection() {
    let kinds: [fn(&Live) -> Segment; 4] = [
        |live| live.ack(),
        |live| live.ack().flags("FA"),
        |live| live.client.get(COOKIE),
        |live| {
            let ahead = live.request();
            let seq = ahead.seq.wrapping_add(100_000);
            ahead.seq(seq)
        },
    ];
    for kind in kinds {
        let _host = own_host();
        let live = Live::answered();
        in_ring(&live.node);
        way_out(&live);
        let packet = kind(&live);
        send(&live.node, &claim(&live.client, 0), &packet);
        live.expect(CLAIMED);
        assert_eq!(moved(&live, &packet), linux_tcb());
    }
}

/// Where there is a door the packet is not delivered: its urgent pointer may reach into the data that comes next, and
/// the server would then read something else than what the door judges.
#[test]
fn nothing_passes_the_door_by_it() {
    let _host = own_host();
    let live = Live::answered();
    in_ring(&live.node);
    way_out(&live);
    let end = live.ack().flags("FAU");
    send(&live.node, &claim(&live.client, 0), &end);
    live.expect(CLAIMED);
    assert_eq!(moved(&live, &end), linux_tcb());
    live.stream.set_nonblocking(true).unwrap();
    let error = (&live.stream).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    live.forwards(&end, FORWARDED);
}

/// A RST, with or without an acknowledgement, ends the socket. The connection server gets no answer, because it needs
/// no entry for the connection.
#[test]
fn a_rst_ends_the_connection() {
    for flags in ["R", "RA"] {
        let _host = own_host();
        let live = Live::answered();
        in_ring(&live.node);
        way_out(&live);
        let mut rst = live.request().flags(flags).payload("");
        if flags == "R" {
            rst.ack = 0;
        }
        send(&live.node, &claim(&live.client, 0), &rst);
        live.expect(CLAIMED);
        let error = (&live.stream).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{flags}");
        live.nothing_sent();
    }
}

/// A CLAIM with a RST goes around like any other, but the last data server does not answer it.
#[test]
fn a_rst_of_nobodys_connection() {
    let _host = own_host();
    let node = Node::ds();
    in_ring(&node);
    let client = Client::fresh();
    let rst = client.later(7, 100, 100).flags("R").packet();
    let ask = |asked| to_ds(&claim(&client, asked), node.now(), &rst);
    node.run(&ask(0)).expect(Redirect, PASSED_ON);
    node.run(&ask(2)).expect(Drop, UNCLAIMED);
}

/// A packet that has come without its data is not delivered: the answer only says where the connection is.
#[test]
fn without_its_data_it_is_only_answered() {
    let _host = own_host();
    let live = Live::answered();
    in_ring(&live.node);
    way_out(&live);
    let headers = live.request().payload("");
    send_headers(&live.node, &live.client, &headers);
    live.expect(CLAIMED);
    assert_eq!(moved_as(&live, &headers), (linux_tcb(), true));
    // After that the data itself comes.
    live.forwards(&live.request(), LET_IN);
    expect_bytes(&live.stream, GET);
}

/// A data server that does not have the connection passes on that the data is missing. The answer that nobody has the
/// connection does not say so.
#[test]
fn without_its_data_it_goes_around() {
    let _host = own_host();
    let node = Node::ds();
    in_ring(&node);
    let client = Client::fresh();
    let packet = client.later(7, 100, 100);
    let mut header = header_of(&node, &claim(&client, 0), TO_DS);
    header.flags = LCCP_FLAG_HEADERS as u8;
    let frame = |header| to_ds_raw(&sealed(header, &key().lccp(), TO_DS, &packet.packet()));
    let seen = node.run(&frame(header)).expect(Redirect, PASSED_ON);
    assert_eq!(seen.packet().body[3], LCCP_FLAG_HEADERS as u8);
    header.tcb.attempt = 2;
    let seen = node.run(&frame(header)).expect(Redirect, UNCLAIMED);
    assert_eq!(sent(&node, &seen).packet, packet.packet());
}

fn send_headers(node: &Node, client: &Client, packet: &Segment) {
    let mut header = header_of(node, &claim(client, 0), TO_DS);
    header.flags = LCCP_FLAG_HEADERS as u8;
    let packet = packet.packet();
    send_lccp(ds(0), &sealed(header, &key().lccp(), TO_DS, &packet));
}

/// The socket here is an older connection's on these ports, whose client has vanished. The packet is not of that
/// connection, so the next data server is asked.
#[test]
fn another_connection_of_the_same_ports() {
    let _host = own_host();
    let live = Live::answered();
    in_ring(&live.node);
    way_out(&live);
    let other = live
        .client
        .again()
        .later(COOKIE.wrapping_add(0x0800_0000), 500, 500);
    send(&live.node, &claim(&live.client, 0), &other);
    live.expect(PASSED_ON);
}

#[test]
fn who_has_it_not_asks_the_next() {
    for listening in [false, true] {
        let _host = own_host();
        let _listener = listening.then(|| listen(WEB));
        let node = Node::ds();
        in_ring(&node);
        for asked in [0, 1] {
            let client = Client::fresh();
            let packet = client.later(7, 100, 100);
            let frame = to_ds(&claim(&client, asked), node.now(), &packet.packet());
            let seen = node.run(&frame).expect(Redirect, PASSED_ON);
            let on = sent(&node, &seen);
            assert_eq!((on.from, on.to), (ds(0), ds(1)));
            assert_eq!(seen.packet().ethernet.destination, ds_mac(1));
            assert_eq!(on.message, claim(&client, asked + 1));
            assert_eq!(on.packet, packet.packet());
            assert_eq!(seen.frame.len(), frame.len());
        }
    }
}

#[test]
fn the_last_says_that_nobody_has_it() {
    let _host = own_host();
    let node = Node::ds();
    in_ring(&node);
    // This holds also for a data server that was asked by mistake, and for one at which the count can go no
    // further.
    for asked in [2, 3, 200, 254] {
        let client = Client::fresh();
        let packet = client.later(7, 100, 100);
        let frame = to_ds(&claim(&client, asked), node.now(), &packet.packet());
        let seen = node.run(&frame).expect(Redirect, UNCLAIMED);
        let back = sent(&node, &seen);
        assert_eq!((back.from, back.to), (ds(0), CS));
        assert_eq!(seen.packet().ethernet.destination, CS_MAC);
        let expected = none(&client, asked + 1, false);
        assert_eq!(back.message, expected);
        assert_eq!(back.packet, packet.packet());
    }
    ring(&node, ds(1), 1000);
    let client = Client::fresh();
    let packet = client.later(7, 100, 100).packet();
    let frame = to_ds(&claim(&client, 254), node.now(), &packet);
    node.run(&frame).expect(Redirect, UNCLAIMED);
}

/// A data server that cannot ask the next one must not say that nobody has the connection: the client would get a RST
/// for a connection that is alive.
#[test]
fn where_a_question_ends() {
    let _host = own_host();
    let node = Node::ds();
    node.data_server().set_peer(CS, &peer(CS_MAC)).unwrap();
    let client = Client::fresh();
    let packet = client.later(7, 100, 100).packet();
    let ends = |asked| {
        let frame = to_ds(&claim(&client, asked), node.now(), &packet);
        node.run(&frame).expect(Drop, NO_WAY);
    };
    // The cases are: no ring is known; no way to the next data server is known; a data server is missing in the
    // ring; no way to the asker is known.
    ends(0);
    ring(&node, ds(2), 3);
    ends(0);
    let next = short_address(ds(2));
    let incomplete = Ring {
        next,
        length: 2,
        missing: 1,
    };
    node.data_server().set_ring(0, &incomplete).unwrap();
    ends(1);
    ring(&node, ds(2), 3);
    node.data_server()
        .set_peer(CS, &DataServer::default())
        .unwrap();
    ends(2);
}

/// A connection that was handed over to data server 1 with this request, at a node in a ring.
fn handed_over_with(text: &[u8]) -> (Live, Segment) {
    let live = owned();
    in_ring(&live.node);
    way_out(&live);
    let request = request(&live, text);
    goes_with(&live, &request);
    ended(&live);
    (live, request)
}

/// Both the ADOPT with which a connection was handed over and MOVED may be lost. Then nobody has it, and the data server
/// that handed it over knows where it went. Of other packets it knows nothing.
#[test]
fn who_has_handed_it_over_sends_the_request_after_it() {
    let _host = own_host();
    let (live, request) = handed_over_with(ELSEWHERE);
    send(&live.node, &claim(&live.client, 1), &request);
    live.expect(&[("ds_claim_followed", 1), ("ds_door_again", 1)]);
    told_moved(&live, &request);
    told_again(&live, &request, None);
    let end = request.seq.wrapping_add(ELSEWHERE.len() as u32);
    let behind = request.clone().seq(end).payload("more");
    send(&live.node, &claim(&live.client, 1), &behind);
    live.expect(PASSED_ON);
    // The client has something of the response, so the ADOPT was not lost.
    let mut answered = request;
    answered.ack = answered.ack.wrapping_add(1);
    send(&live.node, &claim(&live.client, 1), &answered);
    live.expect(PASSED_ON);
}

/// The data server to which the connection went has died. It may have done the request, or have handed it on, so the
/// other data servers are asked.
#[test]
fn what_went_to_a_dead_data_server_is_not_sent_after_it() {
    for text in [POST, ELSEWHERE] {
        let _host = own_host();
        let (live, request) = handed_over_with(text);
        kill_next(&live.node);
        send(&live.node, &claim(&live.client, 1), &request);
        live.expect(PASSED_ON);
    }
}

/// Sends messages to the connection server and to data server 1 where [`Live::wire`] sees them.
fn way_out(live: &Live) {
    for (address, mac) in [(CS, CS_MAC), (ds(1), ds_mac(1))] {
        let way = DataServer {
            ifindex: crate::sniff::Wire::interface(),
            ..peer(mac)
        };
        live.node.data_server().set_peer(address, &way).unwrap();
    }
}

/// Returns what the answer, which must carry `packet`, says of the connection. It skips segments that the kernel may
/// have sent before the answer.
#[track_caller]
fn moved(live: &Live, packet: &Segment) -> TcbPart {
    let (tcb, is_cut) = moved_as(live, packet);
    assert!(!is_cut);
    tcb
}

/// Does what [`moved`] does, and also returns whether the answer says that the packet is there without its data.
#[track_caller]
fn moved_as(live: &Live, packet: &Segment) -> (TcbPart, bool) {
    let message = loop {
        let packet = live.wire.next();
        if packet.ip.protocol != etherparse::IpNumber::TCP {
            assert_eq!(packet.ethernet.destination, CS_MAC);
            break opened(&live.node, &packet);
        }
    };
    assert_eq!((message.from, message.to), (ds(0), CS));
    assert_eq!(message.packet, packet.packet());
    let Message::Moved {
        flow: of,
        tcb,
        next,
        is_cut,
    } = message.message
    else {
        panic!("{message:?}");
    };
    assert_eq!((of, next), (flow(&live.client), None));
    (tcb, is_cut)
}
