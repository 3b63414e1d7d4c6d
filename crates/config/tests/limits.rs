//! As many services and data servers as the programs' maps hold, and not one more.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fmt::Write as _;

/// One connection server, `data_servers` data servers, `services` services.
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
