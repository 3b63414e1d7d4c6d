//! A configuration can have as many services, data servers, pools, routes and hosts as the programs' maps
//! hold, and not one more.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fmt::Write as _;

/// The text of a configuration with one connection server, `data_servers` data servers and `services` services.
fn cluster(data_servers: usize, services: usize) -> String {
    let mut text = String::from("[cluster]\nkey_file = \"cluster.key\"\n");
    text += "[[node]]\nname = \"cs1\"\naddress = \"10.0.0.1\"\nroles = [\"cs\"]\n";
    for i in 0..data_servers {
        let address = format!("10.1.{}.{}", i / 200, i % 200 + 1);
        writeln!(
            text,
            "[[node]]\nname = \"ds{i}\"\naddress = \"{address}\"\nroles = [\"ds\"]"
        )
        .unwrap();
    }
    for i in 0..services {
        writeln!(
            text,
            "[[service]]\nname = \"s{i}\"\naddress = \"10.2.0.1\"\nport = {}",
            i + 1
        )
        .unwrap();
    }
    text
}

#[test]
fn the_most_fits() {
    let config = common::parse(&cluster(256, 64)).unwrap().config;
    assert_eq!(
        (config.data_servers().count(), config.services.len()),
        (256, 64)
    );
    assert!(
        config
            .services
            .iter()
            .all(|service| service.nodes.len() == 256)
    );
}

#[test]
fn one_more_does_not() {
    let error = common::parse(&cluster(257, 1)).unwrap_err().to_string();
    assert_eq!(
        error,
        "/etc/baton/baton.toml:1031:1: there are 257 data servers, the most is 256\n  \
         help: remove some, or run a second cluster"
    );
    let error = common::parse(&cluster(1, 65)).unwrap_err().to_string();
    assert_eq!(
        error,
        "/etc/baton/baton.toml:267:1: there are 65 services, the most is 64\n  \
         help: remove some, or run a second cluster"
    );
}

/// The text of two services with `pools` pools and `routes` routes between them. Each route has the next of `hosts`
/// hosts in turn.
fn routed(pools: usize, routes: usize, hosts: usize) -> String {
    let mut services = [String::new(), String::new()];
    for i in 0..pools {
        write!(services[i % 2], "[[service.pool]]\nname = \"p{i}\"\n").unwrap();
    }
    for i in 0..routes {
        let host = format!("*.H{}.example", i % hosts);
        writeln!(
            services[i % 2],
            "[[service.route]]\npath = \"/{i}\"\nhost = \"{host}\"\npool = \"p{}\"",
            i % pools
        )
        .unwrap();
    }
    let [first, second] = services;
    let both = cluster(1, 2);
    let (both, last) = both.split_once("[[service]]\nname = \"s1\"").unwrap();
    format!("{both}{first}[[service]]\nname = \"s1\"{last}{second}")
}

#[test]
fn pools_routes_and_hosts() {
    let loaded = common::parse(&routed(126, 1024, 63)).unwrap();
    assert_eq!(loaded.warnings, []);
    let services = &loaded.config.services;
    let routes: Vec<_> = services.iter().flat_map(|one| &one.routes).collect();
    assert_eq!(routes.len(), 1024);
    let pools: usize = services.iter().map(|one| one.pools.len()).sum();
    assert_eq!(pools, 126);

    let text = routed(126, 126, 1);
    let pool = |name: &str| {
        format!(
            "[[service.pool]]\nname = \"{name}\"\n[[service.route]]\nhost = \"{name}\"\npool = \"{name}\"\n"
        )
    };
    assert!(common::parse(&text).is_ok());
    let error = |text: &str| match common::parse(text).unwrap_err() {
        baton_config::Error::Invalid(findings) => findings[0].problem.what.clone(),
        other => panic!("{other}"),
    };
    assert_eq!(
        error(&(text + &pool("more"))),
        "there are 127 pools, the most is 126"
    );
    assert_eq!(
        error(&routed(2, 1025, 1)),
        "there are 1025 routes, the most is 1024"
    );
    assert_eq!(
        error(&routed(2, 200, 65)),
        "there are 65 different hosts in routes, the most is 63"
    );
}
