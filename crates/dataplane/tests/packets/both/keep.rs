//! KEEP and handovers of connections that this node's own data server has, on a live loopback.

use std::io::Read as _;

use baton_abi::{DataServer, TCB_ADOPTING};

use super::entry::{HERE, enter, owners};
use crate::{
    cluster::{ARRIVES_AT, CS, ds, ds_mac},
    ds::loopback::{COOKIE, Live, expect, expect_bytes, send},
    host::on_own_host,
    lccp::{adopt, handover, opened},
    node::{Counted, Node},
    segment::{GET, Segment},
};

fn attached() -> Node {
    Node::attached_both(ARRIVES_AT)
}

/// The connection server has just asked its own data server to give this connection to the next one.
fn asked(live: &Live, request: &Segment) {
    enter(&live.node, &live.client, request, 1, HERE);
    send(&live.node, &handover(&live.client, 1), request);
}

/// The entry says so at once, and nothing about it is sent to anybody.
#[track_caller]
fn kept(live: &Live, counter: &str) {
    let counted: Counted<'_> = &[(counter, 1), ("cs_kept", 1)];
    expect(&live.node, counted);
    let tcb = live.node.tcb(&live.client).unwrap();
    assert_eq!((tcb.owner, tcb.previous), (HERE, 1));
    assert_eq!(u32::from(tcb.state) & TCB_ADOPTING, 0);
    no_message(live);
}

/// Only TCP of the host's own kernel has left until now.
#[track_caller]
fn no_message(live: &Live) {
    let marker = crate::segment::Client::fresh();
    let packet = marker.get(COOKIE);
    send(&live.node, &handover(&marker, 1), &packet);
    expect(&live.node, &[("ds_passed_on", 1)]);
    loop {
        let packet_seen = live.wire.next();
        if packet_seen.ip.protocol != etherparse::IpNumber::TCP {
            let message = opened(&live.node, &packet_seen);
            assert_eq!(message.packet, packet.packet(), "{message:?}");
            return;
        }
    }
}

#[test]
fn the_client_has_not_acknowledged_the_response() {
    on_own_host(|| {
        let mut live = Live::adopted_at(attached());
        expect_bytes(&live.stream, GET);
        live.write();
        let mut next = live.request();
        next.ack -= 1;
        asked(&live, &next);
        kept(&live, "ds_kept_unsent");
        expect_bytes(&live.stream, GET);
    });
}

#[test]
fn the_server_has_not_read_the_request_before() {
    on_own_host(|| {
        let live = Live::adopted_at(attached());
        let next = live.client.later(COOKIE, GET.len(), 0);
        let next = next.flags("PA").payload("GET /second");
        asked(&live, &next);
        kept(&live, "ds_kept_unread");
        expect_bytes(&live.stream, GET);
        expect_bytes(&live.stream, b"GET /second");
    });
}

/// Then the connection stays: what this node does not know, its connection server does not either.
#[test]
fn there_is_no_way_to_the_next() {
    on_own_host(|| {
        let live = Live::answered_at(attached());
        let none = DataServer::default();
        live.node.plane().set_peer(ds(1), &none).unwrap();
        asked(&live, &live.request());
        expect(&live.node, &[("ds_kept_no_way", 1), ("cs_kept", 1)]);
        assert_eq!(owners(&live.node, &live.client), (HERE, 1));
        expect_bytes(&live.stream, GET);
    });
}

/// A late KEEP, when the entry has moved on, changes nothing.
#[test]
fn the_entry_is_elsewhere_by_now() {
    on_own_host(|| {
        let mut live = Live::adopted_at(attached());
        expect_bytes(&live.stream, GET);
        live.write();
        let mut next = live.request();
        next.ack -= 1;
        enter(&live.node, &live.client, &next, 1, 2);
        send(&live.node, &handover(&live.client, 1), &next);
        expect(&live.node, &[("ds_kept_unsent", 1), ("lccp_mismatch", 1)]);
        assert_eq!(owners(&live.node, &live.client), (1, 2));
        expect_bytes(&live.stream, GET);
    });
}

/// A quiet one goes to the next, in the name of this node.
#[test]
fn a_quiet_connection_goes_to_the_next() {
    on_own_host(|| {
        let live = Live::answered_at(attached());
        let request = live.request();
        asked(&live, &request);
        expect(&live.node, &[("ds_handed_over", 1)]);
        let packet = live.wire.next();
        assert_eq!(packet.ethernet.destination, ds_mac(1));
        let message = opened(&live.node, &packet);
        assert_eq!((message.from, message.to), (CS, ds(1)));
        assert_eq!(message.message, adopt(&live.client));
        assert_eq!(message.packet, request.packet());
        assert_eq!(owners(&live.node, &live.client), (1, HERE));
        let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    });
}
