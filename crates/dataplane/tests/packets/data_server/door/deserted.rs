//! A data server whose server's program does not listen, because it is being restarted: another data server of the pool
//! gets what would begin here.

use std::net::{Ipv4Addr, TcpListener};

use baton_abi::{ADOPT_ATTEMPTS, Given};
use baton_wire::{Message, Refusal};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::owner::{AGAIN, ELSEWHERE, HANDED_ON, HERE, end_of, owned, request, told_again};
use crate::{
    data_server::agent::reader::{READS, cut, is_reset, reads, send_in, tell, with_agent},
    prelude::*,
};

const GOES_ON: Counted<'_> = &[("ds_door_deserted", 1), ("ds_door_handed_on", 1)];

/// Has the server stop listening, and leaves this data server and data server 1 in the pool of GET.
fn desert(live: &mut Live) {
    live.node.set_choices(0, &[0, 0, 1]);
    // The listener at another port takes the place of the server's.
    live.listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
}

/// Checks that data server 1 gets the connection with this request, and that the connection server is told.
#[track_caller]
fn goes_to_next(live: &Live, request: &Segment) {
    let adopts = live.adopted_by_next(1);
    assert!(adopts.packet.ends_with(&request.payload));
}

#[track_caller]
fn moved_to_next(live: &Live) {
    let told = live.message_to(CS, CS_MAC).message;
    assert!(
        matches!(told, Message::Moved { next: Some(next), .. } if next == short(ds(1))),
        "{told:?}"
    );
}

/// Returns a data server that was deserted, has sent a connection on to data server 1, and is no longer deserted.
fn sent_on() -> (Live, TcpListener, Segment) {
    let (mut live, agent) = with_agent();
    live.has_acks = true;
    desert(&mut live);
    live.client = Client::fresh();
    let first = live.client.get(COOKIE);
    send(&live.node, &adopt(&live.client), &first);
    live.expect(GOES_ON);
    moved_to_next(&live);
    goes_to_next(&live, &first);
    live.listener = listen(WEB);
    (live, agent, first)
}

/// What comes behind the request follows it, also when a server listens here again: by then data server 1 may have
/// answered.
#[test]
fn a_first_request_goes_to_another_member_of_its_pool() {
    let _host = own_host();
    let (live, _agent, first) = sent_on();
    live.forwards(&first, AGAIN);
    live.message_to(CS, CS_MAC);
    told_again(&live, &first, None);
    let behind = first.clone().seq(end_of(&first));
    live.forwards(&behind, &[("ds_door_followed", 1)]);
    assert!(nothing_to_accept(&live.listener));
}

/// The connection server may know another data server for a request that this node's tables give to nobody else.
#[test]
fn what_nobody_else_may_answer_is_refused() {
    let _host = own_host();
    let mut live = owned();
    live.has_acks = true;
    desert(&mut live);
    live.client = Client::fresh();
    let first = live.client.get(COOKIE).payload(HERE);
    send(&live.node, &adopt(&live.client), &first);
    live.expect(&[("ds_refused", 1)]);
    let told = live.message_to(CS, CS_MAC).message;
    let is_refused = matches!(told, Message::Refused { tcb, refusal: Refusal::NoListener, .. } if tcb.attempt == 0);
    assert!(is_refused, "{told:?}");
}

/// A request that the agent has read goes to another member of its pool, too.
#[test]
fn what_the_agent_has_read_goes_to_another_member_of_its_pool() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    let whole = request(&live, GET);
    let read = reads(&live, &agent, &whole);
    tell(&live, &read, &whole, 0);
    desert(&mut live);
    send_in(&live, &whole);
    live.expect(GOES_ON);
    goes_to_next(&live, &whole);
    moved_to_next(&live);
    is_reset(&read);
}

/// The agent has an idle connection, and reads its next request. That goes to another member of its pool.
#[test]
fn an_idle_connection_comes_to_the_agent() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    desert(&mut live);
    live.client = Client::fresh();
    let first = live.client.get(COOKIE);
    let idle = first.clone().payload(b"");
    send(&live.node, &adopt_after(&live.client, 1), &idle);
    live.expect(READS);
    send(&live.node, &adopt_after(&live.client, 1), &first);
    live.expect(&[("ds_duplicate", 1)]);
    let (read, _) = accept(&agent);
    expect_bytes(&read, GET);
    tell(&live, &read, &first, 0);
    send_in(&live, &first);
    live.expect(GOES_ON);
    live.adopted_by_next(2);
}

/// An ADOPT with which an idle connection came, and that comes late, does not begin it anew: the connection has gone on
/// with its next request.
#[test]
fn an_idle_connection_does_not_come_back_late() {
    let _host = own_host();
    let (live, _agent, first) = sent_on();
    let idle = first.clone().payload(b"");
    send(&live.node, &adopt(&live.client), &idle);
    live.expect(&[("ds_door_followed", 1)]);
    moved_to_next(&live);
    let follows = live.message_to(ds(1), ds_mac(1)).message;
    assert!(matches!(follows, Message::Forward { .. }), "{follows:?}");
    assert!(nothing_to_accept(&live.listener));
}

/// A copy of the ADOPT that comes late goes where the first one has gone. One that has come back from there begins the
/// connection.
#[test]
fn what_was_sent_on_goes_the_same_way_until_it_comes_back() {
    let _host = own_host();
    let (live, _agent, first) = sent_on();
    for attempt in [0, 1] {
        send(&live.node, &adopt_after(&live.client, attempt), &first);
        live.expect(&[("ds_door_handed_on", 1)]);
        moved_to_next(&live);
        assert_eq!(live.message_to(ds(1), ds_mac(1)).packet, first.packet());
    }
    send(&live.node, &adopt_after(&live.client, 3), &first);
    live.expect(ADOPTED);
    expect_bytes(&accept(&live.listener).0, GET);
}

/// Where deserted data servers have sent a connection to each other and the last ADOPT was lost, the one that repeats it
/// has its attempt, and begins the connection where that one would have. The lost one, sent again, finds it there.
#[test]
fn what_comes_back_begins_here() {
    let _host = own_host();
    let (live, _agent, first) = sent_on();
    let again = |attempt| adopt_again(&live.client, attempt, Some(short(ds(1))));
    send(&live.node, &again(1), &first);
    live.expect(AGAIN);
    let follows = live.message_to(CS, CS_MAC);
    assert!(matches!(follows.message, Message::Moved { .. }));
    let repeats = live.message_to(ds(1), ds_mac(1)).message;
    assert!(
        matches!(repeats, Message::AdoptAgain { tcb, .. } if tcb.attempt == 2),
        "{repeats:?}"
    );
    send(&live.node, &again(3), &first);
    live.expect(ADOPTED);
    expect_bytes(&accept(&live.listener).0, GET);
    send(&live.node, &adopt_after(&live.client, 3), &first);
    live.expect(&[("ds_duplicate", 1)]);
    assert!(nothing_to_accept(&live.listener));
}

/// A note from long ago still says where the connection went. What follows it is counted, and stays an ADOPT: two such
/// notes may lead to each other.
#[test]
fn what_follows_an_old_note_is_counted() {
    let _host = own_host();
    let (live, _agent, first) = sent_on();
    let given = map_named(live.node.plane(), "given");
    let key = live.node.tcb_key(&live.client);
    let note = given
        .lookup(key.as_bytes(), MapFlags::ANY)
        .unwrap()
        .unwrap();
    let mut note = Given::read_from_bytes(&note).unwrap();
    note.tick = note.tick.wrapping_sub(64);
    given
        .update(key.as_bytes(), note.as_bytes(), MapFlags::ANY)
        .unwrap();
    send(&live.node, &adopt_again(&live.client, 1, None), &first);
    live.expect(AGAIN);
    moved_to_next(&live);
    let adopts = live.message_to(ds(1), ds_mac(1)).message;
    assert!(
        matches!(adopts, Message::AdoptAgain { tcb, .. } if tcb.attempt == 2),
        "{adopts:?}"
    );
}

/// What the agent has read counts its attempts on. After the last one nobody serves it.
#[test]
fn what_agents_send_on_counts_its_attempts() {
    let _host = own_host();
    for (attempt, is_last) in [(1, false), (ADOPT_ATTEMPTS as u8 - 1, true)] {
        let (mut live, agent) = with_agent();
        live.client = Client::fresh();
        let whole = live.client.get(COOKIE).payload(ELSEWHERE);
        let [first, rest] = cut(&whole, 8);
        send(&live.node, &adopt_after(&live.client, attempt), &first);
        live.expect(READS);
        live.forwards(&rest, FORWARDED);
        let (read, _) = accept(&agent);
        tell(&live, &read, &whole, first_pool_of_one() + 1);
        send_in(&live, &whole);
        if is_last {
            live.expect(&[("ds_door_nobody", 1)]);
            continue;
        }
        live.expect(HANDED_ON);
        live.adopted_by_next(attempt + 1);
    }
}

/// An ADOPT of an earlier request than the one with which the connection was sent on is late.
#[test]
fn what_is_older_than_what_was_sent_on_goes_nowhere() {
    let _host = own_host();
    let (mut live, _agent, first) = sent_on();
    desert(&mut live);
    let earlier = first.clone().seq(first.seq.wrapping_sub(100));
    send(&live.node, &adopt(&live.client), &earlier);
    live.expect(&[("ds_given", 1)]);
}

/// Some of a request that a data server has sent may come from an agent, so the connection server cannot give it to
/// another one: the agent here answers.
#[test]
fn what_another_data_server_has_sent_is_answered() {
    let _host = own_host();
    let (mut live, agent) = with_agent();
    desert(&mut live);
    live.client = Client::fresh();
    let first = live.client.get(COOKIE).payload(HERE);
    send(&live.node, &adopt_after(&live.client, 1), &first);
    live.expect(&[("ds_door_nobody", 1), ("ds_door_reads", 1)]);
    expect_bytes(&accept(&agent).0, HERE);
}
