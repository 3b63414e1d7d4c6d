//! The door treats a packet that the kernel has merged (GRO) like the segments of which it was made: it cuts the packet
//! where the next request begins, and what is too long for a message waits and goes in pieces.

use baton_net::client_frame::PIECE;

use super::{
    early::{comes_again, one, waiting},
    owner::{ELSEWHERE, HERE, end_of, ended, goes_with, request},
};
use crate::data_server::{adopt::loopback::expect_bytes, agent::reader::with_agent};
use crate::{host::own_host, merged::send_merged};

const SEGMENT: u16 = 1348;
const BODY: usize = 6000;

/// Returns a request for `path` with a body that takes several segments.
fn upload(path: &str) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {BODY}\r\n\r\n");
    [head.as_bytes(), &[b'x'; BODY]].concat()
}

/// Returns the number of pieces in which so many bytes that have waited come again.
fn pieces(bytes: usize) -> u64 {
    bytes.div_ceil(PIECE) as u64
}

#[test]
fn it_is_let_in_as_a_whole() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let whole = upload("/ds1/a");
    send_merged(&request(&live, &whole), SEGMENT);
    live.expect(&[("ds_delivered", 1), ("ds_door_request", 1)]);
    expect_bytes(&live.stream, &whole);
}

#[test]
fn its_body_is_followed() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let head = "POST /ds1/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("{BODY:x}\r\n{}\r\n", "x".repeat(BODY));
    let whole = format!("{head}{chunk}{chunk}0\r\n\r\n");
    send_merged(&request(&live, whole.as_bytes()), SEGMENT);
    live.expect(&[("ds_delivered", 1), ("ds_door_request", 1)]);
    expect_bytes(&live.stream, whole.as_bytes());
}

#[test]
fn it_is_cut_where_the_next_request_begins() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    let next = upload("/ds1/b");
    let both = request(&live, &[HERE, &next].concat());
    send_merged(&both, SEGMENT);
    live.expect(&[
        ("ds_delivered", 1),
        ("ds_door_cut", 1),
        ("ds_door_request", 1),
        ("ds_door_waits", 1),
    ]);
    expect_bytes(&live.stream, HERE);
    let early = one(&ring);
    let begin = both.seq.wrapping_add(HERE.len() as u32);
    assert_eq!((early.seq, &early.bytes), (begin, &next));
}

/// A merged request is too long for a message, so it goes to the other data server in pieces.
#[test]
fn a_request_for_another_goes_in_pieces() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    let whole = upload("/ds2/a");
    send_merged(&request(&live, &whole), SEGMENT);
    live.expect(&[("ds_door_later", 1), ("ds_door_waits", 1)]);
    let early = one(&ring);
    assert_eq!(early.bytes, whole);
    comes_again(&live, &early);
    live.expect(&[
        ("ds_door_followed", pieces(whole.len()) - 1),
        ("ds_door_handed_on", 1),
    ]);
    ended(&live);
}

#[test]
fn what_comes_for_one_that_has_gone_follows_in_pieces() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let ring = waiting(&live);
    let gone = request(&live, ELSEWHERE);
    goes_with(&live, &gone);
    ended(&live);
    let behind = gone.clone().seq(end_of(&gone)).payload(upload("/ds2/b"));
    send_merged(&behind, SEGMENT);
    live.expect(&[("ds_door_later", 1), ("ds_door_waits", 1)]);
    comes_again(&live, &one(&ring));
    let followed = pieces(behind.payload.len());
    live.expect(&[("ds_door_followed", followed)]);
}
