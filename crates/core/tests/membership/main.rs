//! Membership in virtual time: a small cluster, in single scenarios and in random ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;
mod properties;
mod scenarios;

use std::net::Ipv4Addr;
use std::time::Duration;

use baton_core::Moment;
use baton_core::membership::{
    Cluster, Event, HelloOutcome, Membership, Node, Service, UsableServer,
};
use baton_wire::{Address, Clock, Endpoint, Health, Hello, HelloService, Incarnation, Permille};

const SILENCE: Duration = Duration::from_millis(1000);
const WEB: u16 = 80;
const API: u16 = 81;

/// Weights of the nodes 0 to 4. The last node takes no new connections.
const WEIGHTS: [u8; 5] = [1, 2, 1, 255, 0];

fn membership() -> Membership {
    let nodes = (0..5)
        .map(|n| configured(n, WEIGHTS[usize::from(n)]))
        .collect();
    let names = |nodes: &[u8]| nodes.iter().map(|n| format!("ds{n}")).collect();
    let web = Service {
        name: "web".into(),
        at: service(WEB),
        nodes: names(&[0, 1, 2, 3, 4]),
    };
    let api = Service {
        name: "api".into(),
        at: service(API),
        nodes: names(&[0, 1, 4]),
    };
    Membership::new(ms(0), Cluster::new(nodes, vec![web, api]).unwrap(), SILENCE)
}

fn configured(n: u8, weight: u8) -> Node {
    Node {
        name: format!("ds{n}"),
        address: node(n),
        weight,
    }
}

fn hello(life: u64, words: &[(u16, Health)]) -> Hello {
    let word = |&(port, health)| HelloService {
        cluster: service(port),
        health,
        connections: 0,
    };
    let incarnation = Incarnation::started_at(clock(life));
    Hello::new(
        incarnation,
        Permille::saturating(0),
        words.iter().map(word).collect(),
    )
    .unwrap()
}

/// Lets a node of life 1 say something at `now`, by its own clock at `sent`.
fn says(m: &mut Membership, now: u64, n: u8, sent: u64, words: &[(u16, Health)]) -> HelloOutcome {
    m.handle_hello(ms(now), node(n), clock(sent), &hello(1, words))
}

fn usable(m: &Membership, port: u16) -> Vec<u8> {
    let servers = &m.usable(service(port)).unwrap().servers;
    servers
        .iter()
        .map(|server| server.address.octets()[15])
        .collect()
}

fn events(m: &mut Membership, now: u64) -> Vec<Event> {
    std::iter::from_fn(|| m.poll(ms(now))).collect()
}

fn changed(port: u16) -> Event {
    Event::UsableChanged { at: service(port) }
}

fn service(port: u16) -> Endpoint {
    Endpoint {
        address: Ipv4Addr::new(10, 77, 0, 100).into(),
        port,
    }
}

fn node(n: u8) -> Address {
    Ipv4Addr::new(192, 0, 2, n).into()
}

fn clock(nanos: u64) -> Clock {
    Clock::from_nanos(nanos)
}

fn ms(millis: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(millis))
}
