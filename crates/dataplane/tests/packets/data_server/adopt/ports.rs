//! A client's port is used again while an older connection still holds it: the older connection ends.

use std::{
    io::{ErrorKind, Read as _},
    net::{SocketAddr, TcpListener, TcpStream},
};

use crate::prelude::*;

/// Runs `then` with an adopted connection whose server has read its request.
fn with_older(then: impl FnOnce(Node, TcpListener, Client, TcpStream) + Send) {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    let old = Client::fresh();
    let stream = adopted(&node, &listener, &old);
    expect_bytes(&stream, GET);
    then(node, listener, old, stream);
}

/// A client has vanished without FIN or RST, and its port is used again: the old connection ends, the new one begins,
/// and nothing is sent in between.
#[test]
fn an_older_connection_gives_way() {
    with_older(|node, listener, old, stream| {
        let new = old.again();
        send_adopt(&node, &new.get(COOKIE ^ 0x55));
        let (newer, from) = accept(&listener);
        assert_eq!(from, SocketAddr::V4(new.address));
        expect_bytes(&newer, GET);
        node.expect(&[ADOPTED, &[("ds_stale_ended", 1)]].concat());
        let ended = (&stream).read(&mut [0; 16]).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
    });
}

/// An ADOPT of a data server does not end another connection, because a data server does not see what clients send. The
/// older connection goes on until a connection server sends the same ADOPT.
#[test]
fn a_data_server_ends_no_other_connection() {
    with_older(|node, listener, old, _stream| {
        let new = old.again();
        let request = new.get(COOKIE ^ 0x55);
        send_adopt_from_data_server(&node, &new, &request);
        node.expect(&[("ds_stale_kept", 1)]);
        node.forwards(&old.later(COOKIE, GET.len(), 1), FORWARDED);
        send_adopt(&node, &request);
        let (newer, _) = accept(&listener);
        expect_bytes(&newer, GET);
        node.expect(&[ADOPTED, &[("ds_stale_ended", 1)]].concat());
    });
}

#[test]
fn time_wait_gives_way() {
    with_older(|node, listener, old, stream| {
        drop(stream);
        // The client acknowledges the server's FIN with its own.
        node.forwards(&old.later(COOKIE, GET.len(), 1).flags("FA"), FORWARDED);
        until(is_in_time_wait);

        let new = old.again();
        send_adopt(&node, &new.get(COOKIE ^ 0x55));
        let (newer, _) = accept(&listener);
        expect_bytes(&newer, GET);
        node.expect(&[ADOPTED, &[("ds_time_wait_ended", 1)]].concat());
    });
}

/// The SYN of a later connection came by another connection server than its first request. The one that got the request
/// still has an entry of the old connection, so it sends the request as FORWARD. The old connection's socket in
/// TIME_WAIT does not get it.
#[test]
fn time_wait_has_nothing_of_a_later_connection() {
    let _host = own_host();
    let live = Live::answering();
    let heard = live.answer.len() as u32 + 1;
    let fin = live.client.later(COOKIE, live.sent, heard).flags("FA");
    let Live {
        node,
        client: old,
        stream,
        listener: _listener,
        wire: _wire,
        ..
    } = live;
    drop(stream);
    node.forwards(&fin, FORWARDED);
    until(is_in_time_wait);

    node.forwards(&old.again().get(COOKIE ^ 0x55), &[("ds_none", 1)]);
    // What the old connection's client sends again still reaches TIME_WAIT, and is answered.
    node.forwards(&fin, FORWARDED);
}

/// Whether the host's only connection is in TIME_WAIT, and its full socket is gone. The kernel may handle a packet only
/// after the program has counted it, and for a moment both sockets are there.
fn is_in_time_wait() -> bool {
    let sockets = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
    let states = sockets
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().nth(3));
    let others: Vec<_> = states.filter(|state| *state != "0A").collect();
    others == ["06"]
}
