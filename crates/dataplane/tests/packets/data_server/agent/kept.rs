//! The agent keeps what it has read until the connection's socket has it, on whatever node that is.

use std::io::Write as _;

use baton_abi::{Kept, RouteKey, TcbKey};
use baton_wire::{Message, ShortAddress};

use super::reader::{DELIVERED, GIVEN, REPEATED, reads, send_in, tell, with_agent};
use crate::{
    data_server::{
        door::{
            owner::{
                AGAIN, ELSEWHERE, HERE, LET_IN, end_of, ended, goes_with, is_reset, request,
                serves, told_again,
            },
            owner_ends::{begins_here, kill_next},
        },
        handover::leave::but_echo,
    },
    prelude::*,
};

fn key(live: &Live) -> TcbKey {
    TcbKey::of(live.client.address, live.client.service)
}

/// Has the agent keep the client's data from sequence number `begin` on.
fn keep(live: &Live, begin: u32) {
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    assert_eq!(reading.kept(&key(live)).unwrap(), None);
    reading.keep(&key(live), begin).unwrap();
}

#[track_caller]
fn is_known(live: &Live, received: u32, gone: u32) {
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    let known = reading.kept(&key(live)).unwrap();
    assert_eq!(known, Some(Kept { received, gone }));
}

/// Returns the FORWARD with which `keeper`, a data server, sends a part of this connection that it keeps.
fn kept_by(client: &Client, keeper: ShortAddress) -> Message {
    Message::ForwardKept {
        flow: flow(client),
        keeper,
        attempt: 1,
    }
}

#[test]
fn what_has_come_here_is_kept_no_longer() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let whole = request(&live, HERE);
    let read = reads(&live, &agent, &whole);
    keep(&live, whole.seq);
    tell(&live, &read, &whole, first_pool_of_one());
    send_in(&live, &whole);
    live.expect(GIVEN);
    is_known(&live, whole.seq, 0);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
    send_in(&live, &whole);
    live.expect(REPEATED);
    is_known(&live, end_of(&whole), 0);
}

/// Kept data follows a connection that has gone elsewhere, and the message names this node as its keeper.
#[test]
fn what_has_come_elsewhere_is_kept_no_longer() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let whole = request(&live, ELSEWHERE);
    keep(&live, whole.seq);
    goes_with(&live, &whole);
    send_in(&live, &whole);
    live.expect(AGAIN);
    told_again(&live, &whole, Some(short(ds(0))));
    // Data behind the request with which the connection has gone follows in FORWARD.
    let behind = whole.clone().seq(end_of(&whole));
    send_in(&live, &behind);
    live.expect(&[("ds_door_followed", 1)]);
    let follows = live.message_to(ds(1), ds_mac(1));
    assert_eq!(follows.message, kept_by(&live.client, short(ds(0))));
    assert_eq!(but_echo(&follows.packet), but_echo(&behind.packet()));
    let heard = &[("ds_door_received", 1)];
    let (flow, end) = (flow(&live.client), end_of(&whole));
    // RECEIVED may come late, and an older one may come after a newer one.
    for (said, received, gone) in [
        (Some(whole.seq.wrapping_add(3)), 3, 0),
        (None, 3, 1),
        (Some(end), HERE.len() as u32, 1),
        (Some(whole.seq), HERE.len() as u32, 1),
    ] {
        send(&live.node, &Message::Received { flow, end: said }, &whole);
        live.expect(heard);
        is_known(&live, whole.seq.wrapping_add(received), gone);
    }
    live.nothing_sent();
}

/// RECEIVED for a connection of which nothing is kept leaves no note.
#[test]
fn only_what_is_kept_is_known() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let whole = request(&live, ELSEWHERE);
    let (flow, end) = (flow(&live.client), Some(7));
    send(&live.node, &Message::Received { flow, end }, &whole);
    live.expect(&[("ds_door_received", 1)]);
    let reading = live.node.data_server().reading(LOOPBACK).unwrap();
    assert_eq!(reading.kept(&key(&live)).unwrap(), None);
}

#[test]
fn who_keeps_what_is_here_is_told() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let old = request(&live, HERE);
    serves(&mut live, HERE);
    let next = request(&live, HERE);
    let by = kept_by(&live.client, short(ds(1)));
    send(&live.node, &by, &old);
    live.expect(REPEATED);
    let told = live.message_to(ds(1), ds_mac(1));
    let (flow, end) = (flow(&live.client), Some(next.seq));
    assert_eq!(told.message, Message::Received { flow, end });
    // New data from a keeper is let in like any other data.
    send(&live.node, &by, &next);
    live.expect(&[("ds_delivered", 1), ("ds_door_request", 1)]);
    expect_bytes(&live.stream, HERE);
    live.nothing_sent();
}

/// Kept data has been acknowledged. Every segment with data that leaves acknowledges it too, until the socket itself
/// has received that much. From a segment that acknowledged less, the client would take the data but not the timestamp.
#[test]
fn no_response_acknowledges_less_than_its_client_knows() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let here = request(&live, HERE);
    live.forwards(&here, LET_IN);
    expect_bytes(&live.stream, HERE);
    let kept = here.clone().seq(end_of(&here)).payload(ELSEWHERE);
    let says = |live: &Live| {
        (&live.stream).write_all(ANSWER).unwrap();
        let said = std::iter::repeat_with(|| live.said()).find(|said| !said.payload().is_empty());
        let said = said.unwrap();
        (
            said.segment().acknowledgment_number(),
            said.segment().window_size(),
        )
    };
    let (before, window) = says(&live);
    assert_eq!(before, kept.seq);
    live.answers += 1;
    let again = Segment {
        ack: live.ack().ack,
        ..here.clone().seq(kept.seq)
    };
    live.forwards(&again, LET_IN);
    expect_bytes(&live.stream, HERE);
    let kept = again.clone().seq(end_of(&again)).payload(ELSEWHERE);
    let by = kept_by(&live.client, short(ds(1)));
    send(&live.node, &by, &kept);
    live.expect(&[("ds_door_waits", 1), ("ds_door_withheld", 1)]);
    // Kept data of an earlier connection from this port does not count for this connection.
    let earlier = kept.clone().seq(kept.seq.wrapping_add(1 << 20));
    send(&live.node, &by, &earlier);
    await_counted(&live.node, "ds_door_later");
    live.node.look();
    let (acknowledged, left) = says(&live);
    assert_eq!(acknowledged, end_of(&kept));
    assert!((1..=window).contains(&left));
    // The socket itself acknowledges the kept data that it has received.
    live.answers += 1;
    live.sent += 2 * HERE.len();
    let third = live.ack().flags("PA").payload(HERE);
    assert_eq!(third.seq, kept.seq);
    live.forwards(&third, LET_IN);
    expect_bytes(&live.stream, HERE);
    assert_eq!(says(&live).0, end_of(&third).max(end_of(&kept)));
}

#[test]
fn who_keeps_what_is_of_no_connection_is_told() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let client = Client::fresh();
    let lost: Segment = client.get(9).payload(HERE);
    send(&live.node, &kept_by(&client, short(ds(1))), &lost);
    live.expect(&[("ds_door_gone", 1)]);
    let told = live.message_to(ds(1), ds_mac(1));
    let (flow, end) = (flow(&client), None);
    assert_eq!(told.message, Message::Received { flow, end });
    // The agent of this node keeps data of a connection that has ended: the program notes that, and sends no
    // message.
    keep(&live, lost.seq);
    send_in(&live, &lost);
    live.expect(&[("ds_door_gone", 1)]);
}

/// The note of the handover has the connection's numbers, and the request's keeper sends the request again. With both,
/// a data server that may answer the request begins the connection once more.
#[test]
fn a_request_comes_back_from_a_data_server_that_has_died() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let whole = request(&live, ELSEWHERE);
    goes_with(&live, &whole);
    ended(&live);
    let plane = live.node.plane();
    let route = RouteKey::of(0, 0, b"/ds2/").unwrap();
    let here = u32::from(first_pool_of_one());
    plane
        .routing()
        .unwrap()
        .set_routes(&[(route, here)])
        .unwrap();
    // As long as data server 1 is alive, it has the connection.
    send_in(&live, &whole);
    live.expect(AGAIN);
    live.message_to(ds(1), ds_mac(1));
    kill_next(&live.node);
    // Data behind the request begins nothing here: it still follows to data server 1 until the request has come.
    let behind = whole.clone().seq(end_of(&whole));
    send_in(&live, &behind);
    live.expect(&[("ds_door_followed", 1)]);
    live.message_to(ds(1), ds_mac(1));
    send_in(&live, &whole);
    begins_here(&mut live, ELSEWHERE);
}

/// Returns an ADOPT that is sent in case the first one has not come, and names the request's keeper, if there is one.
fn again_by(live: &Live, client: &Client, keeper: Option<ShortAddress>) -> Message {
    assert_eq!(live.client.service, client.service);
    adopt_again(client, 0, keeper)
}

#[test]
fn who_has_never_had_a_connection_adopts_it() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    for keeper in [None, Some(short(ds(1)))] {
        let client = Client::fresh();
        let first = client.get(9).payload(HERE);
        let again = again_by(&live, &client, keeper);
        send(&live.node, &again, &first);
        live.expect(&[("ds_adopted", 1), ("ds_door_request", 1)]);
        let (stream, _) = accept(&live.listener);
        expect_bytes(&stream, HERE);
        // The request has come, and its keeper is told so.
        send(&live.node, &again, &first);
        let Some(keeper) = keeper else {
            live.expect(DELIVERED);
            continue;
        };
        live.expect(REPEATED);
        has_received(&live, &client, keeper, &first);
    }
}

/// Checks that data server 1, which keeps this request, is told that all of it has come.
#[track_caller]
fn has_received(live: &Live, client: &Client, keeper: ShortAddress, request: &Segment) {
    assert_eq!(keeper, short(ds(1)));
    let told = live.message_to(ds(1), ds_mac(1));
    let (flow, end) = (flow(client), Some(end_of(request)));
    assert_eq!(told.message, Message::Received { flow, end });
}

/// Checks that this ADOPT begins a connection and that the server gets the request, and then ends the connection by a
/// RST of its client.
#[track_caller]
fn had_and_ended(live: &Live, adopt: &Message, first: &Segment) {
    send(&live.node, adopt, first);
    live.expect(&[("ds_adopted", 1), ("ds_door_request", 1)]);
    let (stream, _) = accept(&live.listener);
    expect_bytes(&stream, HERE);
    let reset = first.clone().seq(end_of(first)).payload(b"").flags("R");
    live.forwards(&reset, FORWARDED);
    is_reset(&stream);
}

/// A data server that had the connection does not begin it again after its end: the server got the request, and must
/// not carry it out a second time.
#[test]
fn who_has_had_a_connection_does_not_adopt_it_again() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let client = Client::fresh();
    let first = client.get(9).payload(HERE);
    let keeper = short(ds(1));
    had_and_ended(&live, &again_by(&live, &client, None), &first);
    send(&live.node, &again_by(&live, &client, None), &first);
    live.expect(&[("ds_ended_before", 1)]);
    send(&live.node, &again_by(&live, &client, Some(keeper)), &first);
    live.expect(REPEATED);
    has_received(&live, &client, keeper, &first);
    assert!(nothing_to_accept(&live.listener));
}

/// An ADOPT that was long on its way, while another one brought its request, does not begin the connection again
/// either. Another connection of the client has other numbers, and begins.
#[test]
fn a_late_adopt_does_not_begin_a_connection_again() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let client = Client::fresh();
    let first = client.get(9).payload(HERE);
    had_and_ended(&live, &adopt(&client), &first);
    send(&live.node, &adopt(&client), &first);
    live.expect(&[("ds_ended_before", 1)]);
    // Nor does one with a request from before, which was for this data server too.
    let earlier = Segment {
        seq: first.seq.wrapping_sub(100),
        ack: first.ack.wrapping_sub(50),
        ..first.clone()
    };
    send(&live.node, &adopt(&client), &earlier);
    live.expect(&[("ds_ended_before", 1)]);
    assert!(nothing_to_accept(&live.listener));
    let other = Segment {
        ack: first.ack.wrapping_add(1),
        ..first.clone()
    };
    send(&live.node, &adopt(&client), &other);
    live.expect(&[("ds_adopted", 1), ("ds_door_request", 1)]);
}

/// The connection has gone on from here with this request, so the request goes there once more.
#[test]
fn who_has_given_a_connection_on_sends_it_once_more() {
    let _host = own_host();
    let (live, _agent) = with_agent();
    let whole = request(&live, ELSEWHERE);
    goes_with(&live, &whole);
    for keeper in [None, Some(short(ds(2)))] {
        send(&live.node, &again_by(&live, &live.client, keeper), &whole);
        live.expect(AGAIN);
        live.message_to(CS, CS_MAC);
        let adopts = live.message_to(ds(1), ds_mac(1));
        let Message::AdoptAgain {
            keeper: its, tcb, ..
        } = adopts.message
        else {
            panic!("{adopts:?}");
        };
        assert_eq!((its, tcb.attempt), (keeper, 1));
    }
}

/// A connection that was here before, and has gone on with an earlier request, may come back with a later one.
#[test]
fn a_connection_that_has_gone_before_comes_back_with_it() {
    let _host = own_host();
    let (mut live, _agent) = with_agent();
    let gone = request(&live, ELSEWHERE);
    goes_with(&live, &gone);
    ended(&live);
    let back = gone.clone().seq(end_of(&gone)).payload(HERE);
    let again = again_by(&live, &live.client, None);
    send(&live.node, &again, &back);
    live.expect(&[("ds_adopted", 1), ("ds_door_request", 1)]);
    live.stream = accept(&live.listener).0;
    expect_bytes(&live.stream, HERE);
}
