//! Single events in a cluster, and their effect on its services.

use baton_core::membership::{Basis, Presence};
use baton_core::policy::Load;

use super::*;

#[test]
fn at_the_start_all_are_usable_and_then_those_that_are_heard() {
    let mut m = membership();
    assert_eq!(usable(&m, WEB), [0, 1, 2, 3]);
    let first: Vec<_> = events(&mut m, 0);
    assert_eq!(first, [changed(WEB), changed(API)]);

    says(&mut m, 200, 0, 1, &[]);
    assert_eq!(
        usable(&m, WEB),
        [0, 1, 2, 3],
        "the others are still awaited"
    );
    assert_eq!(events(&mut m, 200), [Event::CameUp { node: "ds0".into() }]);
    says(&mut m, 900, 0, 2, &[]);

    assert!(events(&mut m, 999).is_empty());
    let silent = (1..5).map(|n| Event::WentSilent {
        node: format!("ds{n}"),
    });
    let expected: Vec<_> = silent.chain([changed(WEB), changed(API)]).collect();
    assert_eq!(events(&mut m, 1000), expected);
    assert_eq!(usable(&m, WEB), [0]);
    assert_eq!(m.usable(service(WEB)).unwrap().basis, Basis::Heard);
}

#[test]
fn failing_is_out_at_once_and_passing_is_in_at_once() {
    let mut m = membership();
    events(&mut m, 0);
    says(&mut m, 1, 1, 1, &[(WEB, Health::Failing)]);
    assert_eq!(usable(&m, WEB), [0, 2, 3]);
    assert_eq!(usable(&m, API), [0, 1], "its other service does not suffer");
    let (node_name, service_name) = ("ds1".to_owned(), "web".to_owned());
    let came_up = Event::CameUp {
        node: node_name.clone(),
    };
    let failing = Event::Failing {
        node: node_name.clone(),
        service: service_name.clone(),
    };
    assert_eq!(events(&mut m, 1), [came_up, failing, changed(WEB)]);

    says(&mut m, 2, 1, 2, &[(WEB, Health::Failing)]);
    assert_eq!(events(&mut m, 2), [], "no news");
    says(&mut m, 3, 1, 3, &[(WEB, Health::Passing)]);
    let passing = Event::Passing {
        node: node_name,
        service: service_name,
    };
    assert_eq!(events(&mut m, 3), [passing, changed(WEB)]);
    assert_eq!(usable(&m, WEB), [0, 1, 2, 3]);
}

#[test]
fn silence_alone_never_empties_a_service_but_failing_does() {
    let mut m = membership();
    says(&mut m, 1, 0, 1, &[(API, Health::Passing)]);
    says(&mut m, 1, 1, 1, &[(API, Health::Failing)]);
    events(&mut m, 5000);
    assert_eq!(usable(&m, API), [0], "unheard, but the other fails");
    assert_eq!(m.usable(service(API)).unwrap().basis, Basis::Unheard);
    says(&mut m, 6000, 0, 2, &[(API, Health::Failing)]);
    assert_eq!(usable(&m, API), [0; 0]);
    assert_eq!(m.usable(service(API)).unwrap().basis, Basis::Nobody);
    events(&mut m, 9000);
    assert_eq!(
        usable(&m, API),
        [0; 0],
        "who fails and falls silent still fails"
    );
}

#[test]
fn a_daemon_that_restarts_changes_nothing() {
    let mut m = membership();
    says(&mut m, 1, 0, 1, &[(WEB, Health::Passing)]);
    says(&mut m, 1, 1, 1, &[(WEB, Health::Failing)]);
    events(&mut m, 1);
    for n in [0, 1] {
        m.handle_hello(
            ms(600),
            node(n),
            clock(600),
            &hello(500, &[(WEB, Health::Unknown)]),
        );
    }
    assert_eq!(events(&mut m, 600), []);
    assert_eq!(usable(&m, WEB), [0, 2, 3]);
}

#[test]
fn what_was_overtaken_is_ignored_until_the_node_is_silent() {
    let mut m = membership();
    let failing = hello(500, &[(WEB, Health::Failing)]);
    m.handle_hello(ms(1), node(0), clock(600), &failing);
    let mut say = |now, sent, life| {
        m.handle_hello(
            ms(now),
            node(0),
            clock(sent),
            &hello(life, &[(WEB, Health::Passing)]),
        )
    };
    assert_eq!(say(2, 700, 499), HelloOutcome::Outdated, "an earlier life");
    assert_eq!(
        say(2, 599, 500),
        HelloOutcome::Outdated,
        "overtaken, or replayed"
    );
    assert_eq!(say(1000, 599, 500), HelloOutcome::Outdated);
    assert_eq!(
        say(1001, 3, 2),
        HelloOutcome::Accepted,
        "a clock set back does not shut it out for good"
    );
}

#[test]
fn a_hello_counts_only_for_what_its_sender_serves() {
    let mut m = membership();
    events(&mut m, 0);
    let stranger = Address::from(Ipv4Addr::new(203, 0, 113, 1));
    let lie = hello(
        1,
        &[
            (API, Health::Failing),
            (WEB, Health::Passing),
            (99, Health::Failing),
        ],
    );
    assert_eq!(
        m.handle_hello(ms(1), stranger, clock(1), &lie),
        HelloOutcome::FromStranger
    );
    assert_eq!(events(&mut m, 1), []);
    m.handle_hello(ms(1), node(3), clock(1), &lie);
    assert_eq!(m.report(node(3), service(API)), None);
    assert_eq!(
        m.report(node(3), service(WEB)).unwrap().health,
        Health::Passing
    );
}

#[test]
fn a_reload_keeps_what_is_known_and_awaits_no_newcomer() {
    let mut m = membership();
    says(&mut m, 1, 0, 1, &[]);
    says(&mut m, 1, 1, 1, &[(WEB, Health::Failing)]);
    events(&mut m, 1);

    let nodes = [0, 1, 9].map(|n| configured(n, 1)).to_vec();
    let names = ["ds0", "ds1", "ds9"].map(str::to_owned).to_vec();
    let web = Service {
        name: "web".into(),
        at: service(WEB),
        nodes: names,
    };
    m.reconfigure(ms(2), Cluster::new(nodes, vec![web]).unwrap(), SILENCE);
    assert_eq!(usable(&m, WEB), [0]);
    assert_eq!(m.usable(service(API)), None);
    assert_eq!(m.presence(node(2)), None);
    assert_eq!(m.presence(node(9)), Some(Presence::Silent));
    assert_eq!(events(&mut m, 2), [changed(WEB)]);
    says(&mut m, 3, 9, 1, &[]);
    assert_eq!(usable(&m, WEB), [0, 9]);
}

/// Policies that go by load use what a node says only as long as that node is heard.
#[test]
fn loads_are_those_of_who_is_heard() {
    let mut m = membership();
    assert_eq!(m.load(node(0), service(WEB)), None, "nothing said");
    let word = HelloService {
        cluster: service(WEB),
        health: Health::Unknown,
        connections: 7,
    };
    let busy = Permille::saturating(300);
    let life = Incarnation::started_at(clock(1));
    let hello = Hello::new(life, busy, vec![word]).unwrap();
    m.handle_hello(ms(1), node(0), clock(1), &hello);
    let load = Load {
        connections: 7,
        cpu: busy,
    };
    assert_eq!(m.load(node(0), service(WEB)), Some(load));
    assert_eq!(
        m.load(node(0), service(API)),
        None,
        "not of another service"
    );
    events(&mut m, 1001);
    assert_eq!(m.load(node(0), service(WEB)), None, "silent since");
}

/// A node that drains is out of every service, although it does not fail. It stays out while it is silent, until it
/// says otherwise.
#[test]
fn who_drains_is_out_until_it_says_otherwise() {
    let mut m = membership();
    events(&mut m, 0);
    let passing = hello(1, &[(WEB, Health::Passing)]);
    m.handle_hello(
        ms(1),
        node(1),
        clock(1),
        &passing.clone().with_draining(true),
    );
    let name = || "ds1".to_owned();
    let expected = [
        Event::CameUp { node: name() },
        Event::Passing {
            node: name(),
            service: "web".into(),
        },
        Event::Draining { node: name() },
        changed(WEB),
        changed(API),
    ];
    let mut seen = events(&mut m, 1);
    seen.sort_by_key(|event| expected.iter().position(|one| one == event));
    assert_eq!(seen, expected);
    assert!(m.is_draining(node(1)));
    assert_eq!((usable(&m, WEB), usable(&m, API)), (vec![0, 2, 3], vec![0]));
    assert_eq!(
        m.report(node(1), service(WEB)).unwrap().health,
        Health::Passing
    );

    // No node is heard anymore. Silence alone empties no service, but this node has also said that it drains.
    events(&mut m, 5000);
    assert_eq!(usable(&m, WEB), [0, 2, 3]);
    assert_eq!(m.usable(service(WEB)).unwrap().basis, Basis::Unheard);

    m.handle_hello(ms(5001), node(1), clock(2), &passing);
    assert!(!m.is_draining(node(1)));
    assert_eq!(usable(&m, WEB), [1]);
    let undrained = Event::Undrained { node: name() };
    assert!(events(&mut m, 5001).contains(&undrained));
}

#[test]
fn when_all_drain_nobody_is_usable() {
    let mut m = membership();
    for n in 0..5 {
        let drains = hello(1, &[]).with_draining(true);
        m.handle_hello(ms(1), node(n), clock(1), &drains);
    }
    assert_eq!(usable(&m, WEB), []);
    assert_eq!(m.usable(service(WEB)).unwrap().basis, Basis::Nobody);
}

/// Returns the nodes that are usable in a pool of these members.
fn among(m: &Membership, pool: &[u8]) -> Vec<u8> {
    let is_member = |server: &UsableServer| pool.contains(&server.address.octets()[15]);
    let servers = m.usable(service(WEB)).unwrap().among(is_member);
    servers.map(|server| server.address.octets()[15]).collect()
}

#[test]
fn silence_empties_no_pool_though_others_are_heard() {
    let mut m = membership();
    says(&mut m, 900, 0, 1, &[]);
    events(&mut m, 1000);
    assert_eq!(usable(&m, WEB), [0]);
    assert_eq!(among(&m, &[0, 1]), [0]);
    assert_eq!(among(&m, &[1, 2]), [1, 2]);

    let failing = hello(1, &[(WEB, Health::Failing)]);
    m.handle_hello(ms(1000), node(1), clock(1), &failing);
    m.handle_death(ms(1000), node(2), true);
    assert_eq!(among(&m, &[1, 2, 3]), [3]);
    assert_eq!(among(&m, &[1, 2]), []);
}

#[test]
fn who_refuses_messages_gets_nothing_but_where_all_do() {
    let mut m = membership();
    m.handle_deafness(ms(1), node(1), true);
    assert_eq!(usable(&m, WEB), [0, 2, 3]);
    assert_eq!(among(&m, &[1]), []);
    // The node is out also when no other node is heard.
    events(&mut m, 5000);
    assert_eq!(usable(&m, WEB), [0, 2, 3]);
    for other in [0, 2, 3] {
        m.handle_deafness(ms(5000), node(other), true);
    }
    assert_eq!(usable(&m, WEB), [0, 1, 2, 3], "it is this node's clock");
    m.handle_deafness(ms(5001), node(1), false);
    assert_eq!(usable(&m, WEB), [1]);
}

#[test]
fn a_start_that_takes_long_is_no_silence_of_others() {
    let mut m = membership();
    m.begin(ms(5000));
    assert_eq!(events(&mut m, 5999), [changed(WEB), changed(API)].to_vec());
    assert_eq!(usable(&m, WEB), [0, 1, 2, 3]);
    says(&mut m, 5999, 0, 1, &[]);
    events(&mut m, 6000);
    assert_eq!(usable(&m, WEB), [0]);
}
