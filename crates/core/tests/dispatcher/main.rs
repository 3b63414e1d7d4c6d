//! The two ends of the dispatcher, each alone: the client in virtual time, and the server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod properties;

use std::net::Ipv4Addr;
use std::time::Duration;

use baton_abi::{POLICY_CLIENT, POLICY_PATH, POLICY_TURN};
use baton_core::{
    Moment,
    dispatcher::{Counts, DEAD_AFTER, DispatcherClient, DispatcherServer, REST, ReplyOutcome},
};
use baton_wire::{Address, Endpoint, Flow, Query, Reply};

const PATIENCE: Duration = Duration::from_millis(5);

fn at(ms: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(ms))
}

fn flow(port: u16) -> Flow {
    flow_from(7, port)
}

fn flow_from(host: u8, port: u16) -> Flow {
    let end = |address: [u8; 4], port| Endpoint {
        address: Ipv4Addr::from(address).into(),
        port,
    };
    Flow::new(end([198, 51, 100, host], port), end([10, 77, 0, 100], 80)).unwrap()
}

fn server(number: u8) -> Address {
    Ipv4Addr::new(192, 0, 2, number).into()
}

fn reply(flow: Flow, number: u64, server: Option<Address>) -> Reply {
    Reply {
        flow,
        number,
        server,
        lifetime_ms: 1000,
    }
}

fn ask<'a>(
    client: &mut DispatcherClient<&'a str>,
    ms: u64,
    about: &'a str,
) -> Result<u64, &'a str> {
    client.ask(at(ms), at(ms) + PATIENCE, flow(1), about)
}

fn serves(_: &&str, found: Address) -> bool {
    found == server(11)
}

#[test]
fn an_answer_in_time() {
    let mut client = DispatcherClient::new(100);
    assert_eq!(ask(&mut client, 0, "a"), Ok(100));
    assert_eq!(client.next_timeout(), Some(at(5)));
    let heard = client.handle_reply(at(4), &reply(flow(1), 100, Some(server(11))), serves);
    assert_eq!(
        heard,
        ReplyOutcome::Answer("a", server(11), Duration::from_secs(1))
    );
    // The same answer once more counts neither as an answer nor as a lie.
    let again = client.handle_reply(at(4), &reply(flow(1), 100, Some(server(11))), serves);
    assert_eq!(again, ReplyOutcome::Unasked);
    assert_eq!(client.poll(at(9)), None);
    let counts = Counts {
        asked: 1,
        answered: 1,
        ..Counts::default()
    };
    assert_eq!(client.counts(), counts);
}

#[test]
fn an_answer_too_late() {
    let mut client = DispatcherClient::new(0);
    let answer = |number| reply(flow(1), number, Some(server(11)));
    assert_eq!(ask(&mut client, 0, "a"), Ok(0));
    assert_eq!((client.poll(at(4)), client.poll(at(5))), (None, Some("a")));
    let heard = client.handle_reply(at(5), &answer(0), serves);
    assert_eq!(heard, ReplyOutcome::Unasked);
    // This time the answer comes before anybody has looked at the deadline.
    assert_eq!(ask(&mut client, 0, "b"), Ok(1));
    let heard = client.handle_reply(at(5), &answer(1), serves);
    assert_eq!(heard, ReplyOutcome::Nothing("b"));
    assert_eq!((client.counts().late, client.counts().lie), (2, 0));
}

#[test]
fn lies() {
    let mut client = DispatcherClient::new(7);
    let hear =
        |client: &mut DispatcherClient<_>, reply: Reply| client.handle_reply(at(1), &reply, serves);
    assert_eq!(ask(&mut client, 0, "a"), Ok(7));
    // No question had the first two numbers. The last one is that of another connection's question.
    for (flow, number) in [(flow(1), 8), (flow(1), 1 << 40), (flow(2), 7)] {
        assert_eq!(
            hear(&mut client, reply(flow, number, Some(server(11)))),
            ReplyOutcome::Unasked
        );
    }
    assert_eq!(client.counts().lie, 3);
    // The data server that is named cannot serve the request.
    assert_eq!(
        hear(&mut client, reply(flow(1), 7, Some(server(12)))),
        ReplyOutcome::Nothing("a")
    );
    assert_eq!(client.counts().lie, 4);
    // A reply that names no data server is no lie.
    assert_eq!(ask(&mut client, 0, "b"), Ok(8));
    assert_eq!(
        hear(&mut client, reply(flow(1), 8, None)),
        ReplyOutcome::Nothing("b")
    );
    assert_eq!((client.counts().lie, client.counts().late), (4, 0));
}

#[test]
fn who_never_answers_is_left_alone_for_a_while() {
    let mut client = DispatcherClient::new(0);
    for number in 0..u64::from(DEAD_AFTER) {
        assert_eq!(ask(&mut client, 0, "a"), Ok(number));
    }
    while client.poll(at(5)).is_some() {}
    assert_eq!(client.counts().late, u64::from(DEAD_AFTER));
    let rest = REST.as_millis() as u64;
    assert_eq!(ask(&mut client, 6, "b"), Err("b"));
    assert_eq!(ask(&mut client, 4 + rest, "b"), Err("b"));
    assert_eq!(client.counts().dead, 2);
    assert_eq!(client.rest(at(4 + rest)), Some(Duration::from_millis(1)));
    assert_eq!(client.rest(at(5 + rest)), None);
    // One question is asked as a trial, and gets no answer.
    let number = ask(&mut client, 5 + rest, "c").unwrap();
    assert_eq!(ask(&mut client, 6 + rest, "d"), Err("d"));
    assert_eq!(client.poll(at(10 + rest)), Some("c"));
    assert_eq!(ask(&mut client, 11 + rest, "d"), Err("d"));
    // The next trial is answered. From then on all questions are asked.
    let next = ask(&mut client, 10 + 2 * rest, "e").unwrap();
    assert_eq!(next, number + 1);
    let good = reply(flow(1), next, Some(server(11)));
    let heard = client.handle_reply(at(11 + 2 * rest), &good, serves);
    assert!(matches!(heard, ReplyOutcome::Answer("e", ..)));
    for question in ["f", "g"] {
        assert!(ask(&mut client, 12 + 2 * rest, question).is_ok());
    }
}

#[test]
fn the_dispatcher_chooses_as_its_policies_say() {
    let mut dispatcher = DispatcherServer::default();
    let all = vec![server(11), server(12), server(13)];
    dispatcher.set(1, POLICY_TURN, &all);
    dispatcher.set(2, POLICY_CLIENT, &all);
    dispatcher.set(3, POLICY_PATH, &all);
    dispatcher.set(4, POLICY_TURN, &[]);
    let mut ask_from = |pool, flow, path: &str| {
        let query = Query::new(flow, 42, pool, b"", path.as_bytes());
        let reply = dispatcher.answer(&query);
        assert_eq!((reply.flow, reply.number), (flow, 42));
        reply.server
    };
    let clients: Vec<_> = (1..60)
        .map(|host| ask_from(2, flow_from(host, 1), "/"))
        .collect();
    assert!(all.iter().all(|server| clients.contains(&Some(*server))));
    let mut ask = |pool, port, path: &str| ask_from(pool, flow(port), path);
    let mut turns: Vec<_> = (0..6).filter_map(|_| ask(1, 1, "/")).collect();
    turns.sort();
    assert_eq!(turns, [all[0], all[0], all[1], all[1], all[2], all[2]]);
    // The same client gets the same data server from every port and for every path. The same path gets the same one from
    // every port.
    assert!((1..50).all(|port| ask(2, port, "/x") == ask(2, 0, "/y")));
    let paths: Vec<_> = (0..60).map(|path| ask(3, 1, &format!("/{path}"))).collect();
    let again: Vec<_> = (0..60).map(|path| ask(3, 2, &format!("/{path}"))).collect();
    assert_eq!(paths, again);
    assert!(all.iter().all(|server| paths.contains(&Some(*server))));
    assert_eq!((ask(4, 1, "/"), ask(5, 1, "/")), (None, None));
}

#[test]
fn a_pool_that_is_not_kept_has_no_answer() {
    let mut dispatcher = DispatcherServer::default();
    for pool in [1, 2] {
        dispatcher.set(pool, POLICY_TURN, &[server(11)]);
    }
    dispatcher.keep(&[2]);
    let mut ask = |pool| {
        let query = Query::new(flow(1), 1, pool, b"", b"/");
        dispatcher.answer(&query).server
    };
    assert_eq!((ask(1), ask(2)), (None, Some(server(11))));
}
