//! Adoption itself, on the loopback of a private namespace, with the program attached: ADOPTs in,
//! accepted connections out.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, SocketAddrV4, TcpListener},
    num::NonZeroU16,
};

use baton_wire::{Message, TcbPart};

use crate::prelude::*;

#[test]
fn an_adopted_connection_is_the_servers() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    judges_nothing(&node);
    let client = Client::fresh();
    send_adopt(&node, &client.get(COOKIE));
    let (stream, _) = accept(&listener);
    node.expect(&[("ds_adopted", 1)]);
    assert_eq!(stream.local_addr().unwrap(), SocketAddr::V4(WEB));
    expect_bytes(&stream, GET);

    // A second ADOPT with the same packet is a duplicate.
    node.adopts(&client.get(COOKIE), &[("ds_duplicate", 1)]);
    assert!(nothing_to_accept(&listener));

    // The packets that follow find the socket, in FORWARD as they would without a message around them.
    let next = client.later(COOKIE, GET.len(), 0);
    node.forwards(&next.clone().flags("PA").payload("more"), FORWARDED);
    expect_bytes(&stream, b"more");
    node.forwards(
        &client.later(COOKIE, GET.len() + 4, 0).flags("FA"),
        FORWARDED,
    );
    assert_eq!((&stream).read(&mut [0; 16]).unwrap(), 0);

    // An ADOPT that comes again is a duplicate also after the client's FIN.
    node.adopts(&client.get(COOKIE), &[("ds_duplicate", 1)]);
    (&stream).write_all(b"an answer").unwrap();
    assert!(stream.take_error().unwrap().is_none());
}

/// The kernel makes a socket whatever options the client has offered.
#[test]
fn every_kind_of_client() {
    let kinds: [(&str, fn(&mut TcbPart), fn(Segment) -> Segment); 8] = [
        ("Linux", |_| (), |get| get),
        ("no timestamps", |_| (), |get| get.options([])),
        ("no SACK", |tcb| tcb.sack = false, |get| get),
        ("no scale", |tcb| tcb.scales = None, |get| get),
        ("nothing", |tcb| *tcb = BARE, |get| get.options([])),
        ("the least MSS", |tcb| tcb.mss = BARE.mss, |get| get),
        (
            "a jumbo MSS",
            |tcb| tcb.mss = NonZeroU16::new(8960).unwrap(),
            |get| get,
        ),
        (
            "odd options",
            |_| (),
            |get| get.options([1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 7, 0]),
        ),
    ];
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    for (name, offer, packet) in kinds {
        let client = Client::fresh();
        let mut tcb = linux_tcb();
        offer(&mut tcb);
        let get = packet(client.get(COOKIE));
        send(&node, &adopt_as(&client, tcb), &get);
        let (stream, from) = accept(&listener);
        assert_eq!(from, SocketAddr::V4(client.address), "{name}");
        expect_bytes(&stream, GET);
        node.expect(ADOPTED);
    }
}

fn adopt_as(client: &Client, tcb: TcbPart) -> Message {
    Message::Adopt {
        flow: flow(client),
        tcb,
        asker: None,
    }
}

const BARE: TcbPart = TcbPart {
    mss: NonZeroU16::new(536).unwrap(),
    scales: None,
    sack: false,
    aware: false,
    attempt: 0,
    cwnd: 0,
    resume: 0,
};

#[test]
fn every_kind_of_listener() {
    let anywhere = SocketAddrV4::new([0, 0, 0, 0].into(), 80);
    let listeners: [(&str, fn(SocketAddrV4) -> TcpListener, SocketAddrV4); 4] = [
        ("the cluster address", listen, WEB),
        ("any address", listen, anywhere),
        ("a group of one", listen_shared, WEB),
        ("a group of one at any address", listen_shared, anywhere),
    ];
    for (name, listen, at) in listeners {
        let _host = own_host();
        let listener = listen(at);
        let node = attached();
        let client = Client::fresh();
        let stream = adopted(&node, &listener, &client);
        expect_bytes(&stream, GET);
        assert_eq!(stream.local_addr().unwrap(), SocketAddr::V4(WEB), "{name}");
    }
}

/// Every listener of a reuseport group gets some of the connections.
#[test]
fn a_reuseport_group() {
    let _host = own_host();
    let group = [listen_shared(WEB), listen_shared(WEB)];
    let node = attached();
    for _ in 0..64 {
        send_adopt(&node, &Client::fresh().get(COOKIE));
    }
    node.expect(&[("ds_adopted", 64), ("ds_door_request", 64)]);
    let accepted = group.each_ref().map(|listener| {
        listener.set_nonblocking(true).unwrap();
        listener.incoming().map_while(Result::ok).count()
    });
    assert_eq!(accepted.iter().sum::<usize>(), 64);
    assert!(accepted.iter().all(|&some| some > 0), "{accepted:?}");
}

#[test]
fn a_service_whose_server_speaks_first() {
    let _host = own_host();
    let listener = listen(SMTP);
    let node = attached();
    let client = Client::of(SMTP);
    let ack = client.ack(COOKIE);
    send_adopt(&node, &ack);
    let (stream, _) = accept(&listener);
    node.expect(&[("ds_adopted", 1)]);
    (&stream).write_all(b"220 ready\r\n").unwrap();

    // The client's first data carries the same numbers as its ACK, so it comes as an ADOPT again.
    node.adopts(&ack.flags("PA").payload("EHLO\r\n"), &[("ds_duplicate", 1)]);
    expect_bytes(&stream, b"EHLO\r\n");
}

/// The request and the client's FIN come in one packet, and then that packet comes once more.
#[test]
fn a_client_that_closes_at_once() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    let client = Client::fresh();
    let get = client.get(COOKIE).flags("FPA");
    send_adopt(&node, &get);
    let (stream, _) = accept(&listener);
    node.expect(ADOPTED);
    let mut all = Vec::new();
    (&stream).read_to_end(&mut all).unwrap();
    assert_eq!(all, GET);
    node.adopts(&get, &[("ds_duplicate", 1)]);
    (&stream).write_all(b"an answer").unwrap();
    assert!(stream.take_error().unwrap().is_none());
}

/// A packet that overtakes its ADOPT is dropped without a RST, and its client sends it again.
#[test]
fn the_second_segment_first() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    judges_nothing(&node);
    let client = Client::fresh();
    let second = client
        .later(COOKIE, GET.len(), 0)
        .flags("PA")
        .payload("more");
    node.forwards(&second, &[("ds_no_socket", 1)]);
    send_adopt(&node, &client.get(COOKIE));
    let (stream, _) = accept(&listener);
    node.expect(&[("ds_adopted", 1)]);
    expect_bytes(&stream, GET);
    node.forwards(&second, FORWARDED);
    expect_bytes(&stream, b"more");
}

/// The kernel assigns no socket of an MPTCP listener, so the daemon's own listener takes the connection and relays it.
#[test]
fn an_mptcp_listener_is_relayed_to() {
    let _host = own_host();
    let Some(_server) = listen_mptcp(WEB) else {
        eprintln!("skipped: this kernel has no MPTCP, or net.mptcp.enabled is 0");
        return;
    };
    let relay = listen(SocketAddrV4::new([127, 0, 0, 1].into(), 9999));
    let node = attached();
    let client = Client::fresh();

    // The refusal comes back over the loopback, where no connection server is.
    send_adopt(&node, &client.get(COOKIE));
    let refused: Counted<'_> = &[
        ("ds_door_request", 1),
        ("ds_refused", 1),
        ("ds_unassigned", 1),
        ("lccp_not_ours", 1),
    ];
    node.expect(refused);

    node.change(|settings| settings.relay_port = 9999);
    send_adopt(&node, &client.get(COOKIE));
    let (stream, from) = accept(&relay);
    assert_eq!(from, SocketAddr::V4(client.address));
    assert_eq!(stream.local_addr().unwrap(), SocketAddr::V4(WEB));
    expect_bytes(&stream, GET);
    node.expect(&[("ds_adopted_relay", 1), ("ds_door_request", 1)]);
}

#[test]
fn an_mss_that_no_socket_can_have_is_refused() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    let client = Client::fresh();
    let mss = NonZeroU16::new(535).unwrap();
    let tcb = TcbPart { mss, ..linux_tcb() };
    send(&node, &adopt_as(&client, tcb), &client.get(COOKIE));
    let refused: Counted<'_> = &[
        ("ds_door_request", 1),
        ("ds_refused", 1),
        ("ds_unassigned", 1),
        ("lccp_not_ours", 1),
    ];
    node.expect(refused);
    assert!(nothing_to_accept(&listener));
}
