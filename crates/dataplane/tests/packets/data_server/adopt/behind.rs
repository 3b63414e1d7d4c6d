//! ADOPT for ports that a connection here has: of the same connection from before it came here, or of
//! another one. The first is delivered and does no harm, the second ends what is here.

use std::io::{ErrorKind, Read as _, Write as _};

use super::loopback::judges_nothing;
use super::loopback::{
    BEGINNING, COOKIE, FORWARDED, attached, expect, expect_bytes, forward, send_adopt,
};
use crate::{
    cluster::WEB,
    host::{accept, listen, nothing_to_accept, on_own_host},
    node::Counted,
    segment::{Client, GET, Segment},
};

const DUPLICATE: Counted<'_> = &[("ds_duplicate", 1)];
/// `BEHIND_SEQ` and `BEHIND_ACK` of bpf/data_server/adopt/adopt.h.
const SEQ: u32 = 1 << 20;
const ACK: u32 = 1 << 28;

/// A request in the middle of a connection, as this data server adopted it.
fn middle(client: &Client) -> Segment {
    let middle = client.later(COOKIE, SEQ as usize, ACK);
    middle.flags("PA").payload(GET)
}

/// What a client says again and again, lost or late on its way through other data servers.
#[test]
fn what_was_before_is_delivered() {
    on_own_host(|| {
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
            expect(&node, &[("ds_adopted", 1)]);

            let mut old = request.clone();
            old.seq = old.seq.wrapping_sub(seq);
            old.ack = old.ack.wrapping_sub(ack);
            send_adopt(&node, &old);
            expect(&node, DUPLICATE);
            assert!(nothing_to_accept(&listener), "{seq}, {ack}");

            // Once more when the server has answered and the client said more.
            (&stream).write_all(BEGINNING).unwrap();
            let mut more = request.clone().payload("more");
            more.seq = more.seq.wrapping_add(GET.len() as u32);
            forward(&node, &more);
            expect(&node, FORWARDED);
            expect_bytes(&stream, b"more");
            if ack < ACK - 1 {
                send_adopt(&node, &old);
                expect(&node, DUPLICATE);
            }
            assert!(stream.take_error().unwrap().is_none(), "{seq}, {ack}");
            (&stream).write_all(b"and so on").unwrap();
        }
    });
}

/// Too far behind, or ahead, in either number: another connection.
#[test]
fn another_connection_ends_it() {
    on_own_host(|| {
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
            expect(&node, &[("ds_adopted", 1)]);

            let mut other = request.clone();
            other.seq = other.seq.wrapping_sub(seq);
            other.ack = other.ack.wrapping_sub(ack);
            send_adopt(&node, &other);
            let (newer, _) = accept(&listener);
            expect_bytes(&newer, GET);
            expect(&node, &[("ds_adopted", 1), ("ds_stale_ended", 1)]);
            let error = (&stream).read(&mut [0; 16]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{seq}, {ack}");
        }
    });
}
