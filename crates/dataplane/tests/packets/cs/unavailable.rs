//! Nobody can answer: HTTP hears of it in its own words, everybody else gets a RST.

use super::http::{get, route};
use crate::{
    cluster::{CLIENT_MAC, CS_MAC, HTTP, HTTP_SERVICE},
    node::{Counted, Node, Seen, Tx},
    read::ends,
    segment::{Client, Segment},
};

const UNAVAILABLE: Counted<'_> = &[("cs_unavailable", 1)];
/// Pool 2 has no choices.
const NOBODY: u32 = 2;

fn prepared() -> Node {
    let node = Node::cs();
    let routes = [(route(0, "/nobody/"), NOBODY)];
    node.plane().set_routes(&routes).unwrap();
    node
}

#[test]
fn to_a_first_request() {
    let node = prepared();
    for (name, request) in [
        ("GET", get("/nobody/")),
        ("a long GET", get(&format!("/nobody/{}", "x".repeat(400)))),
        (
            "half a GET",
            "GET /nobody/?index.html HTTP/1.1\r\nHost: a\r\n".into(),
        ),
    ] {
        let client = Client::of(HTTP);
        let packet = client.get(node.cookie(&client)).payload(request);
        let seen = node.run(&packet.frame());
        assert_eq!(seen.counted.get("cs_unavailable"), Some(&1), "{name}");
        is_503(&seen, &packet);
        assert!(node.tcb(&client).is_none(), "{name}");
    }
}

/// With the client's clock and what it last heard of ours, or none of both.
#[test]
fn its_timestamps() {
    let node = prepared();
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    let request = client.get(cookie).payload(get("/nobody/"));
    let options = |packet: &Segment| {
        let seen = node.run(&packet.frame()).expect(Tx, UNAVAILABLE);
        let tcp = seen.packet().tcp().unwrap();
        tcp.header.options.as_slice().to_vec()
    };
    let mut swapped = request.options.clone();
    let (ours, theirs) = (&request.options[8..12], &request.options[4..8]);
    swapped[4..].copy_from_slice(&[ours, theirs].concat());
    assert_eq!(options(&request), swapped);
    let bare = request.clone().options([]);
    assert_eq!(options(&bare), [1; 12]);
    let strange = request.options([1; 40]);
    assert_eq!(options(&strange), [1; 12]);
}

#[test]
fn what_is_no_http_is_reset() {
    let node = prepared();
    let mut pool = node.plane().pool(HTTP_SERVICE).unwrap();
    pool.choices = 0;
    node.plane().set_pool(HTTP_SERVICE, &pool).unwrap();
    let client = Client::of(HTTP);
    let packet = client.get(node.cookie(&client)).payload("\x16\x03\x01");
    let counted: Counted<'_> = &[("cs_no_data_server", 1)];
    let seen = node.run(&packet.frame()).expect(Tx, counted);
    assert_eq!(seen.packet().tcp().unwrap().flags(), "R");
    assert!(node.tcb(&client).is_none());
}

/// The whole answer to `request`, and the connection's end.
#[track_caller]
fn is_503(seen: &Seen, request: &Segment) {
    let packet = seen.packet();
    let tcp = packet.tcp().unwrap();
    assert_eq!(
        (packet.ethernet.source, packet.ethernet.destination),
        (CS_MAC, CLIENT_MAC)
    );
    assert_eq!(ends(&packet, &tcp), (request.to, request.from));
    assert_eq!(tcp.flags(), "FPA");
    assert_eq!(tcp.header.sequence_number, request.ack);
    let end = request.seq.wrapping_add(request.payload.len() as u32);
    assert_eq!(tcp.header.acknowledgment_number, end);
    assert_eq!(packet.padding, 0);
    let text = String::from_utf8(tcp.payload).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "");
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("HTTP/1.1 503 Service Unavailable"));
    let lines: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let value = |name: &str| {
        let (_, value) = lines.iter().find(|(found, _)| *found == name)?;
        Some(value.trim())
    };
    assert_eq!(value("Content-Length"), Some("0"));
    assert_eq!(value("Connection"), Some("close"));
    assert_eq!(value("Retry-After"), Some("1"));
}
