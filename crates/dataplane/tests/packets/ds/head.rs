//! How responses begin: what the program at the way out shows the daemon, and what not.

use std::os::fd::AsFd as _;

use baton_abi::{HEAD_BYTES, SERVICE_RESUME, Service, ServiceKey};
use baton_dataplane::{Heads, SeenHead, sys};

use crate::{
    cluster::{HTTP, WEB, fresh_client},
    node::Node,
    segment::Segment,
};

/// A tcx program's verdict that leaves the packet to what is behind it.
const GO_ON: u32 = u32::MAX;

/// A data server of which WEB can be resumed, and HTTP cannot.
fn node() -> (Node, Heads) {
    let node = Node::fresh_ds();
    let service = Service {
        flags: SERVICE_RESUME as u16,
        ..Service::default()
    };
    let plane = node.plane();
    plane.set_service(&ServiceKey::of(WEB), &service).unwrap();
    let heads = plane.heads().unwrap();
    (node, heads)
}

fn response(text: &[u8]) -> Segment {
    Segment {
        from: WEB,
        to: fresh_client(),
        seq: 0xffff_fff0,
        ack: 7,
        flags: "PA",
        options: Vec::new(),
        ip_options: Vec::new(),
        payload: text.to_vec(),
    }
}

/// Lets it leave, as it is.
#[track_caller]
fn leaves(node: &Node, packet: &Segment) {
    let program = node.plane().programs().head.as_ref().unwrap();
    let frame = packet.frame();
    let outcome = sys::run_on_frame(program.as_fd(), &frame, None, 1).unwrap();
    assert_eq!((outcome.verdict, outcome.frame), (GO_ON, frame));
}

fn long(bytes: usize) -> Vec<u8> {
    let text = b"HTTP/1.1 200 OK\r\nX: ".iter().copied();
    text.chain((b'a'..=b'z').cycle()).take(bytes).collect()
}

#[test]
fn what_begins_a_response_is_shown() {
    let (node, mut heads) = node();
    let most = HEAD_BYTES as usize;
    for (bytes, seen) in [
        (8, 8),
        (200, 200),
        (most, most),
        (most + 1, most),
        (1400, most),
    ] {
        for options in [&[][..], &[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]] {
            let packet = response(&long(bytes)).options(options);
            node.look();
            leaves(&node, &packet);
            let expected = SeenHead {
                flow: baton_abi::TcbKey::of(packet.to, WEB),
                response_start: packet.seq,
                text: packet.payload[..seen].to_vec(),
            };
            assert_eq!(heads.take().unwrap().collect::<Vec<_>>(), [expected]);
            assert_eq!(node.moved(), [("ds_head".to_owned(), 1)].into());
        }
    }
}

#[test]
fn what_does_not_is_not() {
    let (node, mut heads) = node();
    let good = response(&long(300));
    let other = Segment {
        from: HTTP,
        ..good.clone()
    };
    let of_no_service = Segment {
        from: "10.77.0.100:8080".parse().unwrap(),
        ..good.clone()
    };
    for packet in [
        response(&[]),
        response(b"HTTP/1."),
        response(b"HTTP/2 200 OK\r\n\r\n"),
        response(b"http/1.1 200 OK\r\n\r\n"),
        response(&[0; 1400]),
        // The next segments of a head, as bytes of a body.
        response(&long(300)[1..]),
        other,
        of_no_service,
    ] {
        node.look();
        leaves(&node, &packet);
        assert_eq!(heads.take().unwrap().count(), 0, "{packet:?}");
        assert!(node.moved().is_empty());
    }
}

#[test]
fn without_room_it_is_counted() {
    let (node, mut heads) = node();
    let packet = response(&long(300));
    node.look();
    while !node.moved().contains_key("ds_head_full") {
        leaves(&node, &packet);
    }
    let shown = node.moved()["ds_head"];
    assert!(shown > 500, "only {shown} have room");
    assert_eq!(heads.take().unwrap().count() as u64, shown);
    leaves(&node, &packet);
    assert_eq!(heads.take().unwrap().count(), 1);
}
