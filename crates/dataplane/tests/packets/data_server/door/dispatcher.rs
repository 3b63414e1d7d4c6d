//! A dispatcher on another node says which data server is to answer a request: the request waits until the dispatcher's
//! answer is known. Without an answer this node chooses.

use std::{net::TcpListener, os::fd::AsRawFd as _, time::Duration};

use baton_abi::{
    AnswerKey, HaveRead, NO_POOL, POLICY_CLIENT, POLICY_PATH, SERVICE_ASKS, SERVICE_OWNER,
    SERVICE_PATHS, Service, ServiceKey,
};
use baton_dataplane::{Answers, Early, EarlyRing};
use baton_wire::{Message, PathHash, TcbPart};
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::IntoBytes as _;

use super::{
    early::{comes_again, one, waiting},
    owner::{ELSEWHERE, HERE, LET_IN, end_of, ended, lets_in, request, serves, told_moved},
};
use crate::{
    data_server::agent::reader::{read_for, reads, send_in, with_agent},
    prelude::*,
};

const LONG: Duration = Duration::from_secs(3600);
const ASKS: Counted<'_> = &[("ds_door_asks", 1), ("ds_door_waits", 1)];
/// The counters of a request that has waited and comes again, when the answer names this node.
const COMES_IN: Counted<'_> = &[
    ("ds_answered", 1),
    ("ds_delivered", 1),
    ("ds_door_request", 1),
];
/// The counters of a request that has waited and comes again, when the answer names another data server.
const ELSEWHERE_AS_ANSWERED: Counted<'_> = &[("ds_answered", 1), ("ds_door_handed_on", 1)];
/// The pool of [`ELSEWHERE`], whose only member is data server 1.
const OTHER_POOL: u16 = first_pool_of_one() + 1;

/// A connection of a service that has a dispatcher, and what the daemon needs to ask it: the ring of what waits, the
/// answers, and the agent's listener.
struct Asked {
    live: Live,
    ring: EarlyRing,
    answers: Answers,
    agent: TcpListener,
}

/// Requests that no route takes are for pool 0, which has all three data servers and chooses by path.
fn asked() -> Asked {
    let (live, agent) = with_agent();
    let plane = live.node.plane();
    let service = Service {
        flags: (SERVICE_OWNER | SERVICE_PATHS | SERVICE_ASKS) as u16,
        ..Service::default()
    };
    plane.set_service(&ServiceKey::of(WEB), &service).unwrap();
    chooses_by(&live, POLICY_PATH);
    let answers = live.node.data_server().answers().unwrap();
    answers.give_sign(LONG).unwrap();
    Asked {
        ring: waiting(&live),
        answers,
        agent,
        live,
    }
}

fn chooses_by(live: &Live, policy: u32) {
    let mut pool = live.node.routing().pool(0).unwrap();
    pool.policy = policy as u8;
    live.node.routing().set_pool(0, &pool).unwrap();
}

impl Asked {
    /// Asserts that the request that came last waits and is asked about. Returns it, and the key of its answer.
    #[track_caller]
    fn waits(&self) -> (Early, AnswerKey) {
        self.live.expect(ASKS);
        let early = one(&self.ring);
        let key = early.asks.unwrap();
        (early, key)
    }

    /// Forwards the connection's next request, and asserts that it waits. Returns it, and the key of its answer.
    #[track_caller]
    fn asks_about(&self, text: &[u8]) -> (Early, AnswerKey) {
        self.live.forward(&request(&self.live, text));
        self.waits()
    }

    /// Sends the first request of a new client, in an ADOPT. Returns its packet.
    fn first(&mut self, text: &[u8]) -> Segment {
        self.live.client = Client::fresh();
        let request = self.live.client.get(COOKIE).payload(text);
        send_adopt(&self.live.node, &request);
        request
    }

    /// Asserts that data server 1 is told to adopt the connection with this request, and not to ask the dispatcher
    /// again (`attempt`).
    #[track_caller]
    fn goes(&self, request: &Segment) {
        let adopts = self.live.message_to(ds(1), ds_mac(1));
        let Message::Adopt { tcb, .. } = adopts.message else {
            panic!("{adopts:?}");
        };
        assert_eq!(tcb.attempt, 1);
        assert!(adopts.packet.ends_with(&request.payload));
    }
}

#[test]
fn a_request_waits_until_its_answer_is_known() {
    let _host = own_host();
    let mut asked = asked();
    let (early, key) = asked.asks_about(GET);
    assert_eq!((key.pool, key.client, key.hash & 1), (0, 0, 1));
    assert_eq!((&early.bytes[..], early.comes_again), (GET, true));
    comes_again(&asked.live, &early);
    assert_eq!(asked.waits().1, key);
    asked.answers.remember(&key, Some(0), LONG).unwrap();
    comes_again(&asked.live, &early);
    asked.live.expect(COMES_IN);
    expect_bytes(&asked.live.stream, GET);
    asked.live.answer_another(GET.len());
    // A further request with the same key is let in at once.
    asked.live.forward(&request(&asked.live, GET));
    let let_in = [
        ("ds_answered", 1),
        ("ds_door_request", 1),
        ("ds_forwarded", 1),
    ];
    asked.live.expect(&let_in);
}

#[test]
fn the_answer_may_be_another_data_server() {
    let _host = own_host();
    let asked = asked();
    let request = request(&asked.live, GET);
    asked.live.forward(&request);
    let (early, key) = asked.waits();
    asked.answers.remember(&key, Some(1), LONG).unwrap();
    comes_again(&asked.live, &early);
    asked.live.expect(ELSEWHERE_AS_ANSWERED);
    asked.goes(&request);
    ended(&asked.live);
}

/// If the dispatcher named no data server that can answer, or was late, the lack of an answer is remembered: the
/// request does not wait again.
#[test]
fn without_an_answer_this_node_chooses() {
    let _host = own_host();
    let asked = asked();
    let request = request(&asked.live, ELSEWHERE);
    asked.live.forward(&request);
    let (early, key) = asked.waits();
    assert_eq!(key.pool, OTHER_POOL);
    asked.answers.remember(&key, None, LONG).unwrap();
    comes_again(&asked.live, &early);
    asked
        .live
        .expect(&[("ds_door_handed_on", 1), ("ds_unanswered", 1)]);
    asked.goes(&request);
}

/// An answer does not hold if its lifetime is over, or if the data server that it names is no longer in the pool.
#[test]
fn an_answer_that_does_not_hold_is_asked_for_again() {
    let _host = own_host();
    let asked = asked();
    let (early, key) = asked.asks_about(GET);
    for (owner, lifetime) in [
        (Some(0), Duration::ZERO),
        (None, Duration::ZERO),
        (Some(200), LONG),
    ] {
        asked.answers.remember(&key, owner, lifetime).unwrap();
        comes_again(&asked.live, &early);
        assert_eq!(asked.waits().1, key, "{owner:?}");
    }
}

#[test]
fn while_nobody_can_be_asked_this_node_chooses() {
    type Made = fn(&Asked);
    let cases: [(&str, Made); 3] = [
        ("ds_ask_dead", |asked| asked.answers.rest(0, LONG).unwrap()),
        ("ds_ask_stale", |asked| asked.answers.withdraw().unwrap()),
        ("ds_ask_stale", |asked| {
            asked.live.node.change(|settings| settings.reader_port = 0);
        }),
    ];
    let _host = own_host();
    for (counter, made) in cases {
        let asked = asked();
        made(&asked);
        let request = request(&asked.live, ELSEWHERE);
        asked
            .live
            .forwards(&request, &[(counter, 1), ("ds_door_handed_on", 1)]);
        asked.goes(&request);
    }
}

/// An answer that is known counts although the dispatcher counts as dead.
#[test]
fn what_a_dead_dispatcher_has_said_holds_for_a_while() {
    let _host = own_host();
    let asked = asked();
    let (early, key) = asked.asks_about(GET);
    asked.answers.remember(&key, Some(0), LONG).unwrap();
    asked.answers.rest(0, LONG).unwrap();
    comes_again(&asked.live, &early);
    asked.live.expect(COMES_IN);
}

/// No dispatcher is asked about a request whose connection stays here, nor about a request that comes again.
#[test]
fn a_connection_that_stays_asks_nobody() {
    let _host = own_host();
    let mut asked = asked();
    // This request is for another pool than the one before, and this data server is a member: the connection stays.
    serves(&mut asked.live, HERE);
    let again = request(&asked.live, HERE);
    lets_in(&asked.live, HERE);
    asked.live.forwards(&again, FORWARDED);
    assert_eq!(asked.ring.wait(Duration::ZERO).unwrap().count(), 0);
}

#[test]
fn under_a_policy_by_client_an_answer_is_for_its_client() {
    let _host = own_host();
    let mut asked = asked();
    chooses_by(&asked.live, POLICY_CLIENT);
    asked.first(GET);
    let (_, key) = asked.waits();
    assert_ne!(key.client, 0);
}

/// No socket is made before the answer is known. Then the connection begins as its ADOPT would have begun it.
#[test]
fn the_first_request_of_a_connection_waits_with_it() {
    let _host = own_host();
    let mut asked = asked();
    let first = asked.first(GET);
    let (early, key) = asked.waits();
    assert!(nothing_to_accept(&asked.live.listener));
    // The client sends the request once more, and the connection server forwards it.
    asked.live.forward(&first);
    assert_eq!(asked.waits().1, key);
    // What comes behind the request does not overtake it.
    let behind = first.clone().seq(end_of(&first));
    asked.live.forward(&behind);
    let later = [
        ("ds_door_batch", 2),
        ("ds_door_later", 1),
        ("ds_door_waits", 1),
    ];
    asked.live.expect(&later);
    assert_eq!(one(&asked.ring).asks, None);
    asked.answers.remember(&key, Some(0), LONG).unwrap();
    comes_again(&asked.live, &early);
    let adopted = [
        ("ds_adopted", 1),
        ("ds_answered", 1),
        ("ds_door_request", 1),
    ];
    asked.live.expect(&adopted);
    let (stream, from) = accept(&asked.live.listener);
    assert_eq!(from, asked.live.client.address.into());
    expect_bytes(&stream, GET);
    // The first request is delivered as an old one when it comes again, and the next request is judged.
    asked.live.forwards(&first, FORWARDED);
    asked.live.stream = stream;
    (asked.live.sent, asked.live.answers) = (GET.len(), 0);
    asked.live.write();
    let next = asked
        .live
        .client
        .later(COOKIE, GET.len(), asked.live.answer.len() as u32);
    asked.live.forwards(&next.flags("PA").payload(HERE), LET_IN);
}

#[test]
fn the_first_request_may_be_another_data_servers() {
    let _host = own_host();
    let mut asked = asked();
    let first = asked.first(GET);
    let (early, key) = asked.waits();
    asked.answers.remember(&key, Some(1), LONG).unwrap();
    comes_again(&asked.live, &early);
    asked.live.expect(ELSEWHERE_AS_ANSWERED);
    let moved = asked.live.message_to(CS, CS_MAC);
    assert!(matches!(moved.message, Message::Moved { .. }), "{moved:?}");
    assert!(moved.packet.ends_with(&first.payload));
    asked.goes(&first);
    assert!(nothing_to_accept(&asked.live.listener));
    // What comes behind the request follows the connection.
    let ack = asked.live.client.later(COOKIE, GET.len(), 9);
    asked.live.forwards(&ack, &[("ds_door_followed", 1)]);
    told_moved(&asked.live, &ack);
}

/// A data server that another one has chosen does not ask the dispatcher.
#[test]
fn who_was_chosen_asks_nobody() {
    let _host = own_host();
    let mut asked = asked();
    asked.live.client = Client::fresh();
    let first = asked.live.client.get(COOKIE);
    let Message::Adopt { flow, tcb, asker } = adopt(&asked.live.client) else {
        panic!("no ADOPT");
    };
    let tcb = TcbPart { attempt: 1, ..tcb };
    send(
        &asked.live.node,
        &Message::Adopt { flow, tcb, asker },
        &first,
    );
    asked
        .live
        .expect(&[("ds_adopted", 1), ("ds_door_request", 1)]);
    accept(&asked.live.listener);
}

/// A request that the agent has read is asked about by its normalised path. The agent sends it again, not the daemon.
#[test]
fn what_the_agent_has_read_is_asked_about() {
    let _host = own_host();
    let asked = asked();
    let whole = request(&asked.live, ELSEWHERE);
    let read = reads(&asked.live, &asked.agent, &whole);
    read_for(&asked.live, &read, &whole, OTHER_POOL, 0);
    send_in(&asked.live, &whole);
    let (early, key) = asked.waits();
    assert_eq!((key.pool, early.comes_again), (OTHER_POOL, false));
    assert_eq!(early.bytes, ELSEWHERE);
    asked.answers.remember(&key, Some(1), LONG).unwrap();
    send_in(&asked.live, &whole);
    asked.live.expect(ELSEWHERE_AS_ANSWERED);
    asked.goes(&whole);
}

/// The same path has the same key, whether the door or the agent has read it. So it gets the same answer.
#[test]
fn a_path_has_one_answer() {
    let _host = own_host();
    let asked = asked();
    let whole = request(&asked.live, GET);
    asked.live.forward(&whole);
    let (_, key) = asked.waits();
    let read = reads(&asked.live, &asked.agent, &whole);
    let path = PathHash::of(self::key().hash_key(), b"/whoami")
        .unwrap()
        .get();
    let known = HaveRead {
        end: end_of(&whole),
        head: GET.len() as u32,
        pool: NO_POOL as u16,
        path: [path as u32, (path >> 32) as u32],
        ..HaveRead::default()
    };
    let map = map_named(asked.live.node.plane(), "have_read");
    let socket = read.as_raw_fd().to_ne_bytes();
    map.update(&socket, known.as_bytes(), MapFlags::ANY)
        .unwrap();
    send_in(&asked.live, &whole);
    assert_eq!(asked.waits().1, key);
}
