//! An example of a status, for tests.

use super::{Flows, Peer, Pool, Route, Service, Status, Tally};

/// The status of a connection server with one data server, after a few requests.
pub fn example() -> Status {
    Status {
        node: "cs1".into(),
        roles: vec!["cs".into()],
        interface: "eth0".into(),
        interfaces: vec!["eth0".into()],
        interface_gone: None,
        interfaces_gone: Vec::new(),
        xdp: Some("native".into()),
        uptime: 35,
        nodes: vec![cs(), ds()],
        services: vec![service()],
        flows: Some(Flows {
            live: 12,
            capacity: 1_048_576,
            expired: 0,
        }),
        migration: None,
        failover: None,
        forwarding: None,
        certificates: Vec::new(),
        counters: [("cs_syn".to_owned(), 1), ("cs_rst".to_owned(), 0)].into(),
    }
}

fn cs() -> Peer {
    Peer {
        name: "cs1".into(),
        address: "192.0.2.1".into(),
        roles: vec!["cs".into()],
        state: "this node".into(),
        ..Peer::default()
    }
}

fn ds() -> Peer {
    Peer {
        name: "ds1".into(),
        address: "192.0.2.11".into(),
        roles: vec!["ds".into()],
        state: "alive".into(),
        draining: false,
        connections: [].into(),
        reachable: Some(true),
        adoptions: Some(3),
        flows: Some(1),
        cpu: Some(417),
        clock_skew_ms: Some(0),
        clock_refused: false,
        lccp_version: None,
        tally: Some(tally()),
    }
}

fn service() -> Service {
    Service {
        name: "web".into(),
        address: "192.0.2.100:80".into(),
        policy: "round-robin".into(),
        pools: vec![Pool {
            name: "static".into(),
            policy: "path".into(),
            routes: vec!["/s/".into()],
            taking: vec!["ds1".into()],
            tally: Some(tally()),
        }],
        routes: vec![Route {
            route: "/s/".into(),
            pool: "static".into(),
            tally: Some(tally()),
        }],
        rest: Some(tally()),
        taking: vec!["ds1".into()],
        out: Vec::new(),
        local_health: None,
    }
}

fn tally() -> Tally {
    Tally {
        requests: 7,
        taken_back: 2,
        bytes: 4096,
        unavailable: 1,
        handovers: 5,
    }
}
