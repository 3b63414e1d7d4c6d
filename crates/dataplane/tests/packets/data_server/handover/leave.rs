//! Idle connections leave a data server that is no member of their pool any more: its daemon sends an empty ACK in for each, which
//! goes to another member as a request for that one does.

use baton_wire::Message;
use etherparse::TcpSlice;

use crate::data_server::{
    adopt::loopback::{COOKIE, FORWARDED, LOOPBACK, Live, expect, forward, frame_here, send_adopt},
    door::owner::{
        AGAIN, ELSEWHERE, HERE, ended, goes_with, lets_in, owned, request, serves, told_again,
        told_moved,
    },
};
use crate::{
    cluster::{CS, CS_MAC, ds, ds_mac},
    host::{accept, nothing_to_accept, on_own_host},
    lccp::{flow, short},
    node::Counted,
    segment::{Client, Segment},
};

const LEFT: Counted<'_> = &[("ds_door_handed_on", 1), ("ds_released", 1)];
const STAYS: Counted<'_> = &[("ds_release_refused", 1)];
const GONE: Counted<'_> = &[("ds_release_gone", 1)];
const AT_REST: Counted<'_> = &[("ds_rest", 1)];
/// Of WEB.
const POOL: u16 = 0;

/// Data servers with these bits are the members of the pool now, and data server 1 is who it chooses.
pub fn members(live: &Live, members: u64) {
    let mut pool = live.node.routing().pool(POOL).unwrap();
    pool.members[0] = members;
    live.node.routing().set_pool(POOL, &pool).unwrap();
    live.node.set_choices(POOL, &[1; 3]);
}

/// What the daemon sends in: it knows whose the connection is, and nothing else.
fn leave(live: &Live) {
    let ack = live.client.later(0, 0, 0).options([1; 12]);
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    reading.leave(&frame_here(&ack)).unwrap();
}

/// The rest of a packet but the echo of our own timestamp, which is this socket's of now.
pub fn but_echo(packet: &[u8]) -> (u32, u32, u16, Vec<u8>, Vec<u8>) {
    const IP_BYTES: usize = 20;
    let tcp = TcpSlice::from_slice(&packet[IP_BYTES..]).unwrap();
    (
        tcp.sequence_number(),
        tcp.acknowledgment_number(),
        tcp.window_size(),
        tcp.options()[..8].to_vec(),
        tcp.payload().to_vec(),
    )
}

/// The same, which asks whether the connection is at rest.
fn ask_for_rest(live: &Live) {
    let ack = live.client.later(0, 0, 0).options([1; 12]);
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    reading.rest(&frame_here(&ack)).unwrap();
}

#[track_caller]
fn has_left(live: &Live, last: &Segment) {
    let adopts = live.message_to(ds(1), ds_mac(1));
    let Message::Adopt { flow: of, .. } = &adopts.message else {
        panic!("{adopts:?}")
    };
    assert_eq!(*of, flow(&live.client));
    assert_eq!(but_echo(&adopts.packet), but_echo(&last.packet()));
    ended(live);
}

/// What the client's last packet said is in the ACK that the next one adopts it with.
#[test]
fn it_goes_where_its_pool_has_others() {
    on_own_host(|| {
        let live = owned();
        members(&live, 0b10);
        leave(&live);
        expect(&live.node, LEFT);
        has_left(&live, &live.ack());
        assert!(nothing_to_accept(&live.listener));
    });
}

/// Who was with another pool last is asked about that one.
#[test]
fn the_pool_of_its_last_request_counts() {
    on_own_host(|| {
        let mut live = owned();
        serves(&mut live, HERE);
        members(&live, 0b10);
        leave(&live);
        expect(&live.node, STAYS);
        live.nothing_sent();
    });
}

#[test]
fn a_member_keeps_its_connections_and_who_is_alone_too() {
    on_own_host(|| {
        let live = owned();
        leave(&live);
        expect(&live.node, STAYS);
        members(&live, 0);
        live.node.set_choices(POOL, &[u16::MAX; 3]);
        leave(&live);
        expect(&live.node, STAYS);
        live.nothing_sent();
    });
}

/// Its server has not answered, or the client has not acknowledged the answer.
#[test]
fn who_is_not_idle_stays() {
    on_own_host(|| {
        let mut live = owned();
        members(&live, 0b11);
        lets_in(&live, HERE);
        members(&live, 0b10);
        leave(&live);
        expect(&live.node, STAYS);
        live.sent += HERE.len();
        live.write();
        leave(&live);
        expect(&live.node, STAYS);
    });
}

/// One that has come here idle, from another data server.
fn come_idle() -> Live {
    let mut live = owned();
    live.client = Client::fresh();
    (live.sent, live.answers) = (0, 0);
    send_adopt(&live.node, &live.client.later(COOKIE, 0, 0));
    live.stream = accept(&live.listener).0;
    expect(&live.node, &[("ds_adopted", 1)]);
    live
}

/// Nothing of it was here yet: it goes on to a third with its first request, as any.
#[test]
fn where_it_goes_it_may_go_on_from() {
    on_own_host(|| {
        let mut live = come_idle();
        live.has_acks = true;
        let request = request(&live, ELSEWHERE);
        goes_with(&live, &request);
        ended(&live);
    });
}

/// And its first request is answered there.
#[test]
fn where_it_goes_it_is_answered() {
    on_own_host(|| {
        let mut live = come_idle();
        serves(&mut live, HERE);
        let request = request(&live, ELSEWHERE);
        goes_with(&live, &request);
    });
}

/// An ACK of the network's is only an ACK; and one for a connection that is not here is nothing.
#[test]
fn only_what_is_sent_in_has_one_leave() {
    on_own_host(|| {
        let mut live = owned();
        members(&live, 0b10);
        forward(&live.node, &live.ack().options([1; 12]));
        expect(&live.node, FORWARDED);
        live.client = Client::fresh();
        leave(&live);
        expect(&live.node, GONE);
        live.nothing_sent();
    });
}

/// Its next request finds it gone, and follows.
#[test]
fn what_comes_later_follows_it() {
    on_own_host(|| {
        let live = owned();
        members(&live, 0b10);
        leave(&live);
        expect(&live.node, LEFT);
        has_left(&live, &live.ack());
        live.message_to(CS, CS_MAC);
        let next = request(&live, HERE);
        forward(&live.node, &next);
        expect(&live.node, AGAIN);
        told_moved(&live, &next);
        told_again(&live, &next, None);
    });
}

/// Where it is at rest its connection server is told, with an ACK of the client's; and it stays, whoever its pool has.
#[test]
fn its_connection_server_is_told_where_it_is_at_rest() {
    on_own_host(|| {
        let mut live = owned();
        for at in [0b11, 0b10] {
            members(&live, at);
            ask_for_rest(&live);
            expect(&live.node, AT_REST);
            told_rest(&live);
        }
        members(&live, 0b11);
        serves(&mut live, HERE);
        ask_for_rest(&live);
        expect(&live.node, AT_REST);
        told_rest(&live);
    });
}

#[track_caller]
fn told_rest(live: &Live) {
    let told = live.message_to(CS, CS_MAC);
    let Message::Moved { flow: of, next, .. } = told.message else {
        panic!("{told:?}");
    };
    assert_eq!((of, next), (flow(&live.client), Some(short(ds(0)))));
    let (seq, ack, ..) = but_echo(&told.packet);
    let (its_seq, its_ack, ..) = but_echo(&live.ack().packet());
    assert_eq!((seq, ack), (its_seq, its_ack));
}

/// Its server has not answered, or the client has not acknowledged the answer.
#[test]
fn who_is_not_at_rest_is_not_told_of() {
    on_own_host(|| {
        let mut live = owned();
        lets_in(&live, HERE);
        ask_for_rest(&live);
        live.sent += HERE.len();
        live.write();
        ask_for_rest(&live);
        live.client = Client::fresh();
        ask_for_rest(&live);
        expect(&live.node, GONE);
        live.nothing_sent();
    });
}
