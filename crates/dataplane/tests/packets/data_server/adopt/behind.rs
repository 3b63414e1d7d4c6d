//! ADOPT for ports that a connection here already has. A packet of the same connection, from before that came here, is
//! delivered and does no harm. A packet of another connection ends the one that is here.

use std::io::{ErrorKind, Read as _, Write as _};

use crate::prelude::*;

const DUPLICATE: Counted<'_> = &[("ds_duplicate", 1)];
/// `BEHIND_SEQ` of bpf/include/socket_lookup.h: a sequence number that is this far behind is another connection's.
const SEQ: u32 = 1 << 20;
/// `BEHIND_ACK` of the same header: the limit for acknowledgement numbers.
const ACK: u32 = 1 << 28;

/// Returns a request in the middle of a connection, with which this data server adopts it.
fn middle(client: &Client) -> Segment {
    let middle = client.later(COOKIE, SEQ as usize, ACK);
    middle.flags("PA").payload(GET)
}

/// A client's retransmission from before the connection came here, which was late on its way through other data
/// servers, is delivered as a duplicate.
#[test]
fn what_was_before_is_delivered() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    judges_nothing(&node);
    for (seq, ack) in [
        (0, 0),
        (1, 0),
        (1, 1),
        (GET.len() as u32, 1000),
        (SEQ - 1, ACK - 1),
    ] {
        let client = Client::fresh();
        let request = middle(&client);
        send_adopt(&node, &request);
        let (stream, _) = accept(&listener);
        expect_bytes(&stream, GET);
        node.expect(&[("ds_adopted", 1)]);

        let mut old = request.clone();
        old.seq = old.seq.wrapping_sub(seq);
        old.ack = old.ack.wrapping_sub(ack);
        node.adopts(&old, DUPLICATE);
        assert!(nothing_to_accept(&listener), "{seq}, {ack}");

        // The same ADOPT comes once more after the server has answered and the client has sent more.
        (&stream).write_all(BEGINNING).unwrap();
        let mut more = request.clone().payload("more");
        more.seq = more.seq.wrapping_add(GET.len() as u32);
        node.forwards(&more, FORWARDED);
        expect_bytes(&stream, b"more");
        if ack < ACK - 1 {
            node.adopts(&old, DUPLICATE);
        }
        assert!(stream.take_error().unwrap().is_none(), "{seq}, {ack}");
        (&stream).write_all(b"and so on").unwrap();
    }
}

/// A packet whose sequence or acknowledgement number is too far behind, or ahead, is another connection's.
#[test]
fn another_connection_ends_it() {
    let _host = own_host();
    let listener = listen(WEB);
    let node = attached();
    judges_nothing(&node);
    for (seq, ack) in [
        (SEQ, 0),
        (SEQ - 1, ACK),
        (1, u32::MAX),
        (u32::MAX, 0),
        (1 << 31, 1 << 31),
    ] {
        let client = Client::fresh();
        let request = middle(&client);
        send_adopt(&node, &request);
        let (stream, _) = accept(&listener);
        expect_bytes(&stream, GET);
        node.expect(&[("ds_adopted", 1)]);

        let mut other = request.clone();
        other.seq = other.seq.wrapping_sub(seq);
        other.ack = other.ack.wrapping_sub(ack);
        send_adopt(&node, &other);
        let (newer, _) = accept(&listener);
        expect_bytes(&newer, GET);
        node.expect(&[("ds_adopted", 1), ("ds_stale_ended", 1)]);
        let error = (&stream).read(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{seq}, {ack}");
    }
}
