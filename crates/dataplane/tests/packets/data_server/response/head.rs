//! How responses begin: what the program at the way out shows the daemon, and what not.

use std::io::Write as _;

use baton_abi::{HEAD_BYTES, SERVICE_RESUME, TcbKey};
use baton_dataplane::{Heads, SeenHead};

use crate::data_server::adopt::loopback::{COOKIE, Live, expect_bytes, forward, owns};
use crate::{
    cluster::WEB,
    host::on_own_host,
    segment::{GET, Segment},
};

/// A data server of which WEB can be resumed, or not; its server is about to write its first response.
fn node(flags: u32) -> (Live, Heads) {
    let live = Live::adopted();
    expect_bytes(&live.stream, GET);
    live.stream.set_nodelay(true).unwrap();
    owns(&live.node, flags);
    let heads = live.node.data_server().heads().unwrap();
    (live, heads)
}

/// The server writes, of which nothing else is acknowledged than `before`.
fn write(live: &Live, before: usize, bytes: &[u8]) -> Segment {
    (&live.stream).write_all(bytes).unwrap();
    let answered = u32::try_from(before + bytes.len()).unwrap();
    let ack = live.client.later(COOKIE, GET.len(), answered);
    forward(&live.node, &ack);
    ack
}

/// So many bytes of a head, and no body.
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
        on_own_host(|| {
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
        });
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
        // The next segments of a head, as bytes of a body.
        (SERVICE_RESUME, &whole(300)[1..]),
    ] {
        on_own_host(|| {
            let (live, mut heads) = node(flags);
            write(&live, 0, text);
            assert_eq!(heads.take().unwrap().count(), 0, "{text:?}");
        });
    }
}

/// A body is none, whatever it looks like, and wherever it is cut.
#[test]
fn a_body_begins_no_response() {
    on_own_host(|| {
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
    });
}

#[test]
fn without_room_it_is_counted() {
    on_own_host(|| {
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
    });
}
