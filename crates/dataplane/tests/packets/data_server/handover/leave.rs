//! Idle connections leave a data server that is no longer a member of their pool. The daemon sends in an empty ACK for
//! each, and with this ACK the connection goes to another member, as with a request for that member.

use std::thread::sleep;

use baton_abi::{ADOPT_ATTEMPTS, Pool};
use baton_wire::Message;
use etherparse::TcpSlice;

use crate::{
    data_server::door::owner::{
        AGAIN, ELSEWHERE, HANDED_ON, HERE, LET_IN, RST_IS_LOST, end_of, ended, goes_with, lets_in,
        owned, request, serves, told_again, told_moved,
    },
    prelude::*,
};

const LEFT: Counted<'_> = &[("ds_door_handed_on", 1), ("ds_released", 1)];
pub const STAYS: Counted<'_> = &[("ds_release_refused", 1)];
const GONE: Counted<'_> = &[("ds_release_gone", 1)];
const AT_REST: Counted<'_> = &[("ds_rest", 1)];
/// Index of WEB's pool.
const POOL: u16 = 0;

/// Makes the data servers with these bits the members of the pool, and data server 1 the one that the pool chooses.
pub fn members(live: &Live, members: u64) {
    let mut pool = live.node.routing().pool(POOL).unwrap();
    pool.members[0] = members;
    live.node.routing().set_pool(POOL, &pool).unwrap();
    live.node.set_choices(POOL, &[1; 3]);
}

/// Sends in the empty ACK that the daemon makes. The daemon knows the connection's addresses and ports, and nothing
/// else.
pub fn leave(live: &Live) {
    let ack = live.client.later(0, 0, 0).options([1; 12]);
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    reading.leave(&frame_here(&ack)).unwrap();
}

/// Returns the parts of a packet that can be compared: all but the echo of our own timestamp, which is the socket's at
/// the moment of sending.
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

/// Sends in the empty ACK with which the daemon asks whether the connection is at rest.
pub fn ask_for_rest(live: &Live) {
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

/// The ACK with which the next data server adopts the connection says what the client's last packet said.
#[test]
fn it_goes_where_its_pool_has_others() {
    let _host = own_host();
    let live = owned();
    members(&live, 0b10);
    leave(&live);
    live.expect(LEFT);
    has_left(&live, &live.ack());
    assert!(nothing_to_accept(&live.listener));
}

/// If the connection's last request was for another pool, that pool's members decide whether the connection leaves.
#[test]
fn the_pool_of_its_last_request_counts() {
    let _host = own_host();
    let mut live = owned();
    serves(&mut live, HERE);
    members(&live, 0b10);
    leave(&live);
    live.expect(STAYS);
    live.nothing_sent();
}

/// If that pool has left the configuration, the service's own pool decides.
#[test]
fn in_place_of_a_pool_that_is_gone_the_services_own_counts() {
    let _host = own_host();
    let mut live = owned();
    serves(&mut live, HERE);
    members(&live, 0b10);
    let gone = first_pool_of_one();
    live.node
        .routing()
        .set_pool(gone, &Pool::default())
        .unwrap();
    leave(&live);
    live.expect(LEFT);
    has_left(&live, &live.ack());
}

#[test]
fn a_member_keeps_its_connections_and_who_is_alone_too() {
    let _host = own_host();
    let live = owned();
    leave(&live);
    live.expect(STAYS);
    members(&live, 0);
    live.node.set_choices(POOL, &[u16::MAX; 3]);
    leave(&live);
    live.expect(STAYS);
    live.nothing_sent();
}

/// A connection stays if its server has not answered, or if the client has not acknowledged the answer.
#[test]
fn who_is_not_idle_stays() {
    let _host = own_host();
    let mut live = owned();
    members(&live, 0b11);
    lets_in(&live, HERE);
    members(&live, 0b10);
    leave(&live);
    live.expect(STAYS);
    live.sent += HERE.len();
    live.write();
    leave(&live);
    live.expect(STAYS);
}

/// Returns a connection that has come here idle from another data server.
fn come_idle() -> Live {
    come_idle_after(1)
}

/// Returns a connection that was sent on so often without a request, and has come here.
fn come_idle_after(moves: u8) -> Live {
    let mut live = owned();
    live.client = Client::fresh();
    (live.sent, live.answers) = (0, 0);
    let adopts = adopt_after(&live.client, moves);
    send(&live.node, &adopts, &live.client.later(COOKIE, 0, 0));
    live.stream = accept(&live.listener).0;
    live.expect(&[("ds_adopted", 1)]);
    live
}

/// A connection that has come here idle has had no request here yet. It goes on to a third data server with its first
/// request, like any other.
#[test]
fn where_it_goes_it_may_go_on_from() {
    let _host = own_host();
    let mut live = come_idle();
    live.has_acks = true;
    let request = request(&live, ELSEWHERE);
    goes_with(&live, &request);
    ended(&live);
}

/// The first request of a connection that has come here idle is answered here if it is this data server's.
#[test]
fn where_it_goes_it_is_answered() {
    let _host = own_host();
    let mut live = come_idle();
    serves(&mut live, HERE);
    let request = request(&live, ELSEWHERE);
    goes_with(&live, &request);
}

/// The first request of a connection that has come here idle may be HEAD. Its response says a length, and has no body.
#[test]
fn where_it_goes_its_first_request_may_be_head() {
    let _host = own_host();
    let mut live = come_idle();
    live.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n";
    serves(
        &mut live,
        b"HEAD /ds1/a HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n",
    );
    let request = request(&live, ELSEWHERE);
    goes_with(&live, &request);
}

/// If the connection has had its request and ended, a late ADOPT with that request does not begin it again. One that
/// comes back from where the connection went begins it.
#[test]
fn where_it_goes_no_late_request_begins_it_again() {
    let _host = own_host();
    let mut live = come_idle();
    live.has_acks = true;
    let first = request(&live, HERE);
    lets_in(&live, HERE);
    let reset = first.clone().seq(end_of(&first)).payload(b"").flags("R");
    live.forwards(&reset, FORWARDED);
    send(&live.node, &adopt_after(&live.client, 1), &first);
    live.expect(&[("ds_ended_before", 1)]);
    drop(live);

    let mut live = come_idle();
    live.has_acks = true;
    members(&live, 0b10);
    let first = request(&live, HERE);
    leave(&live);
    live.expect(LEFT);
    send(&live.node, &adopt_after(&live.client, 3), &first);
    live.expect(&[("ds_adopted", 1), ("ds_door_request", 1)]);
}

/// Each move is an attempt to find the connection a server, and some of these are left for its next request. Until that
/// comes, the connection stays. Afterwards it moves again.
#[test]
fn it_moves_only_so_often_before_its_next_request() {
    let _host = own_host();
    let most = ADOPT_ATTEMPTS as u8 / 2;
    for (moves, stays, attempt) in [(most - 1, false, most), (most, true, 1)] {
        let mut live = come_idle_after(moves);
        live.has_acks = true;
        members(&live, 0b10);
        leave(&live);
        if stays {
            live.expect(STAYS);
            live.nothing_sent();
            members(&live, 0b11);
            serves(&mut live, HERE);
            members(&live, 0b10);
            live.node
                .routing()
                .set_pool(first_pool_of_one(), &Pool::default())
                .unwrap();
            leave(&live);
        }
        live.expect(LEFT);
        live.adopted_by_next(attempt);
    }
}

/// A request that was let in, and that TCP has dropped because it was broken on its way, does not count: the next one
/// goes on as the attempt behind those with which the connection has come.
#[test]
fn a_request_that_was_dropped_leaves_the_attempts_as_they_were() {
    let _host = own_host();
    let mut live = come_idle_after(2);
    live.has_acks = true;
    forward_broken(&live.node, &request(&live, HERE));
    live.expect(LET_IN);
    let other = request(&live, ELSEWHERE);
    sleep(RST_IS_LOST);
    live.forwards(&other, &[("ds_door_changed", 1)]);
    live.forwards(&other, HANDED_ON);
    live.adopted_by_next(3);
}

/// An ACK from the network does not make its connection leave, and an ACK that is sent in for a connection that is not
/// here does nothing.
#[test]
fn only_what_is_sent_in_has_one_leave() {
    let _host = own_host();
    let mut live = owned();
    members(&live, 0b10);
    live.forwards(&live.ack().options([1; 12]), FORWARDED);
    live.client = Client::fresh();
    leave(&live);
    live.expect(GONE);
    live.nothing_sent();
}

/// The next request of a connection that has left follows the connection.
#[test]
fn what_comes_later_follows_it() {
    let _host = own_host();
    let live = owned();
    members(&live, 0b10);
    leave(&live);
    live.expect(LEFT);
    has_left(&live, &live.ack());
    live.message_to(CS, CS_MAC);
    let next = request(&live, HERE);
    live.forwards(&next, AGAIN);
    told_moved(&live, &next);
    told_again(&live, &next, None);
}

/// The connection server is told, with an ACK of the client's, that the connection is at rest here. The connection
/// stays, whatever members its pool has.
#[test]
fn its_connection_server_is_told_where_it_is_at_rest() {
    let _host = own_host();
    let mut live = owned();
    for at in [0b11, 0b10] {
        members(&live, at);
        ask_for_rest(&live);
        live.expect(AT_REST);
        told_rest(&live);
    }
    members(&live, 0b11);
    serves(&mut live, HERE);
    ask_for_rest(&live);
    live.expect(AT_REST);
    told_rest(&live);
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

/// A connection whose server has not answered, or whose client has not acknowledged the answer, is not at rest, and the
/// connection server is not told of it.
#[test]
fn who_is_not_at_rest_is_not_told_of() {
    let _host = own_host();
    let mut live = owned();
    lets_in(&live, HERE);
    ask_for_rest(&live);
    live.sent += HERE.len();
    live.write();
    ask_for_rest(&live);
    live.client = Client::fresh();
    ask_for_rest(&live);
    live.expect(GONE);
    live.nothing_sent();
}
