//! How responses begin: what the program at tc egress shows the daemon, and what it does not show.

use std::io::Write as _;

use baton_abi::{HEAD_BYTES, SERVICE_RESUME, TcbKey};
use baton_dataplane::{Heads, SeenHead};

use crate::prelude::*;

/// Returns a connection whose server is about to write its first response, and the heads that the daemon is shown.
/// These flags say whether responses of WEB can be resumed.
fn node(flags: u32) -> (Live, Heads) {
    let live = Live::adopted();
    expect_bytes(&live.stream, GET);
    live.stream.set_nodelay(true).unwrap();
    owns(&live.node, flags);
    let heads = live.node.data_server().heads().unwrap();
    (live, heads)
}

/// Has the server write these bytes behind the `before` bytes that it has written already, and the client acknowledge
/// all of them. Returns the acknowledgement.
fn write(live: &Live, before: usize, bytes: &[u8]) -> Segment {
    (&live.stream).write_all(bytes).unwrap();
    let answered = u32::try_from(before + bytes.len()).unwrap();
    let ack = live.client.later(COOKIE, GET.len(), answered);
    live.forward(&ack);
    ack
}

/// Returns a head of this many bytes, of a response without a body.
fn whole(bytes: usize) -> Vec<u8> {
    let text = b"HTTP/1.1 204 No Content\r\nX: ".iter().copied();
    let mut head: Vec<u8> = text
        .chain((b'a'..=b'z').cycle())
        .take(bytes.saturating_sub(4))
        .collect();
    head.extend(b"\r\n\r\n");
    head
}

#[test]
fn what_begins_a_response_is_shown() {
    let most = HEAD_BYTES as usize;
    for (bytes, seen) in [
        (40, 40),
        (200, 200),
        (most, most),
        (most + 1, most),
        (1400, most),
    ] {
        let _host = own_host();
        let (live, mut heads) = node(SERVICE_RESUME);
        for turn in 0..2 {
            let text = whole(bytes);
            let before = turn * bytes;
            write(&live, before, &text);
            let expected = SeenHead {
                flow: TcbKey::of(live.client.address, WEB),
                response_start: COOKIE.wrapping_add(1 + before as u32),
                number: turn as u8 + 1,
                text: text[..seen].to_vec(),
            };
            assert_eq!(heads.take().unwrap().collect::<Vec<_>>(), [expected]);
        }
    }
}

#[test]
fn what_does_not_is_not() {
    for (flags, text) in [
        (0, &whole(300)[..]),
        (SERVICE_RESUME, b"HTTP/1."),
        (SERVICE_RESUME, b"HTTP/2 200 OK\r\n\r\n"),
        (SERVICE_RESUME, b"http/1.1 200 OK\r\n\r\n"),
        (SERVICE_RESUME, &[0; 1400]),
        // A segment that does not begin where a head begins is not shown, like bytes of a body.
        (SERVICE_RESUME, &whole(300)[1..]),
    ] {
        let _host = own_host();
        let (live, mut heads) = node(flags);
        write(&live, 0, text);
        assert_eq!(heads.take().unwrap().count(), 0, "{text:?}");
    }
}

/// A body begins no response, whatever it looks like, and wherever it is cut.
#[test]
fn a_body_begins_no_response() {
    let _host = own_host();
    let (live, mut heads) = node(SERVICE_RESUME);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\n";
    write(&live, 0, head);
    assert_eq!(heads.take().unwrap().count(), 1);
    for part in 0..2 {
        write(&live, head.len() + part * 40, &whole(40));
    }
    assert_eq!(heads.take().unwrap().count(), 0);
    write(&live, head.len() + 80, &whole(40));
    assert_eq!(heads.take().unwrap().count(), 1);
}

#[test]
fn without_room_it_is_counted() {
    let _host = own_host();
    let (live, mut heads) = node(SERVICE_RESUME);
    live.node.look();
    let text = whole(40);
    let mut written = 0;
    while !live.node.moved().contains_key("ds_head_full") {
        write(&live, written, &text);
        written += text.len();
    }
    let shown = live.node.moved()["ds_head"];
    assert!(shown > 500, "only {shown} have room");
    assert_eq!(heads.take().unwrap().count() as u64, shown);
    write(&live, written, &text);
    assert_eq!(heads.take().unwrap().count(), 1);
}
