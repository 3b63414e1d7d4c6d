//! Which changes a reload can apply, and which need a restart.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use baton_config::{Changes, Config, ListChange, NodeName, RestartReason, diff};
use common::{SAMPLE, parse, routed};

/// The sample with one text replaced by another.
fn edited(from: &str, to: &str) -> Config {
    assert!(SAMPLE.contains(from), "{from}");
    parse(&SAMPLE.replacen(from, to, 1)).unwrap().config
}

fn changes(own: &str, from: &str, to: &str) -> Result<Changes, Vec<RestartReason>> {
    let own: NodeName = own.parse().unwrap();
    diff(&edited("", ""), &edited(from, to), &own)
}

fn restart_keys(own: &str, from: &str, to: &str) -> Vec<&'static str> {
    changes(own, from, to)
        .unwrap_err()
        .iter()
        .map(|reason| reason.key)
        .collect()
}

#[test]
fn nothing_changed() {
    assert!(changes("cs1", "", "").unwrap().is_empty());
}

#[test]
fn a_reload_takes_over() {
    let keys = "previous_key_file = \"/etc/baton/cluster.previous.key\"";
    let got = changes("cs1", &format!("# {keys}"), keys).unwrap();
    assert_eq!(
        got,
        Changes {
            keys: true,
            ..Changes::default()
        }
    );

    let keys = "hash_key_file = \"/etc/baton/hash.key\"";
    let got = changes("cs1", &format!("# {keys}"), keys).unwrap();
    assert!(got.keys, "{got:?}");

    let got = changes("cs1", "silence = \"1s\"", "silence = \"2s\"").unwrap();
    assert_eq!(
        got,
        Changes {
            cluster: true,
            ..Changes::default()
        }
    );

    let got = changes("cs1", "closing = \"60s\"", "closing = \"30s\"").unwrap();
    assert_eq!(
        got,
        Changes {
            cs: true,
            ..Changes::default()
        }
    );

    let got = changes("cs1", "watch = false", "watch = true").unwrap();
    assert_eq!(
        got,
        Changes {
            watch: true,
            ..Changes::default()
        }
    );

    let changed = |name: &str| ListChange {
        changed: vec![name.parse().unwrap()],
        ..ListChange::default()
    };
    let got = changes("cs1", "192.0.2.12", "192.0.2.13").unwrap();
    assert_eq!(
        got,
        Changes {
            nodes: changed("ds2"),
            ..Changes::default()
        }
    );

    // This is not the policy of [forwarding], which is commented out.
    let (old, new) = ("\npolicy = \"round-robin\"", "\npolicy = \"client\"");
    let got = changes("cs1", old, new).unwrap();
    let services = ListChange {
        changed: vec!["web".parse().unwrap()],
        ..ListChange::default()
    };
    assert_eq!(
        got,
        Changes {
            services,
            ..Changes::default()
        }
    );
}

#[test]
fn nodes_and_services_come_and_go() {
    let more =
        "[[node]]\nname = \"ds3\"\naddress = \"192.0.2.13\"\nroles = [\"ds\"]\n\n# What clients";
    let added: Vec<NodeName> = vec!["ds3".parse().unwrap()];
    let got = changes("ds1", "# What clients", more).unwrap();
    assert_eq!(
        got.nodes,
        ListChange {
            added: added.clone(),
            ..ListChange::default()
        }
    );
    assert!(got.services.added.is_empty() && got.services.changed.is_empty());
    let back = diff(
        &edited("# What clients", more),
        &edited("", ""),
        &"ds1".parse().unwrap(),
    );
    assert_eq!(
        back.unwrap().nodes,
        ListChange {
            removed: added,
            ..ListChange::default()
        }
    );
}

#[test]
fn pools_and_routes() {
    let config = |text: &str| parse(text).unwrap().config;
    let own: NodeName = "cs1".parse().unwrap();
    let old = routed();
    let changes = |new: &str| diff(&config(&old), &config(new), &own).unwrap();
    let edited = |from: &str, to: &str| {
        assert!(old.contains(from), "{from}");
        old.replacen(from, to, 1)
    };
    let web = || ListChange {
        changed: vec!["web".parse().unwrap()],
        ..ListChange::default()
    };
    let name = |pool: &str| vec![("web".parse().unwrap(), pool.parse().unwrap())];

    let got = changes(&edited("policy = \"path\"", "policy = \"lard\""));
    let pools = ListChange {
        changed: name("images"),
        ..ListChange::default()
    };
    let expected = Changes {
        services: web(),
        pools,
        ..Changes::default()
    };
    assert_eq!(got, expected);

    // A pool that has its nodes from the service changes with it.
    let inheriting = old.replace("nodes = [\"ds1\"]  ", "#  ");
    let fewer = inheriting.replace("[\"ds1\", \"ds2\"]", "[\"ds2\"]");
    let got = diff(&config(&inheriting), &config(&fewer), &own).unwrap();
    assert_eq!((got.pools.changed, got.routes), (name("images"), false));

    for (from, to) in [
        ("path = \"/images/\"", "path = \"/img/\""),
        ("host = \"*.example.org\"", "host = \"example.org\""),
    ] {
        let expected = Changes {
            services: web(),
            routes: true,
            ..Changes::default()
        };
        assert_eq!(changes(&edited(from, to)), expected);
    }

    // The order of two routes for the same host and path counts if they have conditions.
    let first = "[[service.route]]\nmethod = \"PUT\"\npool = \"images\"\n";
    let second = "[[service.route]]\nheader = { a = \"~b\" }\npool = \"images\"\n";
    let last = "[[service.route]]\npool = \"images\"\n";
    let of = |routes: &[&str]| config(&(old.clone() + &routes.concat()));
    let routes_change = |from: &[&str], to: &[&str]| diff(&of(from), &of(to), &own).unwrap().routes;
    assert!(routes_change(&[first, second], &[second, first]));
    assert!(routes_change(&[first], &[last]));
    assert!(routes_change(&[second], &[&second.replace("~b", "b")]));
    assert!(!routes_change(&[first, last], &[last, first]));
    assert!(!routes_change(&[first, second], &[first, second]));

    let more = "[[service.pool]]\nname = \"more\"\n[[service.route]]\npool = \"more\"\n";
    let got = changes(&(old.clone() + more));
    assert_eq!((got.pools.added, got.routes), (name("more"), true));
    let back = diff(&config(&(old.clone() + more)), &config(&old), &own).unwrap();
    assert_eq!((back.pools.removed, back.routes), (name("more"), true));

    // The place of a route or pool in the file does not change the routes.
    let other = edited("[[service.pool]]", &(more.to_owned() + "[[service.pool]]"));
    let got = diff(&config(&(old.clone() + more)), &config(&other), &own).unwrap();
    assert_eq!((got.pools, got.routes), (ListChange::default(), false));
}

#[test]
fn a_restart_is_needed() {
    assert_eq!(
        restart_keys("cs1", "protocol = 253", "protocol = 254"),
        ["protocol"]
    );
    assert_eq!(
        restart_keys("ds1", "/sys/fs/bpf/baton", "/sys/fs/bpf/b"),
        ["bpf_dir"]
    );
    assert_eq!(restart_keys("ds1", "/run/baton", "/run/b"), ["run_dir"]);
    assert_eq!(restart_keys("cs1", "127.0.0.1:9277", ""), ["metrics"]);
    assert_eq!(
        restart_keys("cs1", "flows = 1048576", "flows = 1024"),
        ["flows"]
    );
    assert_eq!(restart_keys("cs1", "\"eth0\"", "\"eth1\""), ["interface"]);
    let two = "[\"eth0\", \"eth1\"]";
    assert_eq!(restart_keys("cs1", "\"eth0\"", two), ["interface"]);
    // The order counts: packets of clients come by the first interface.
    let turned = "[\"eth1\", \"eth0\"]";
    assert_eq!(
        restart_keys("cs1", "\"eth0\"", turned),
        ["interface"],
        "the order counts"
    );
    assert_eq!(restart_keys("cs1", "\"native\"", "\"auto\""), ["xdp"]);
    assert_eq!(restart_keys("ds1", "192.0.2.11", "192.0.2.13"), ["address"]);
    assert_eq!(
        restart_keys("cs1", "roles = [\"cs\"]", "roles = [\"cs\", \"ds\"]"),
        ["roles"]
    );
    // With a switch, a connection server has the cluster addresses elsewhere.
    assert_eq!(restart_keys("cs1", DS1, SWITCH), ["roles of another node"]);
    assert!(changes("ds1", DS1, SWITCH).is_ok());
    let reasons = changes("ds1", "192.0.2.11", "192.0.2.13").unwrap_err();
    assert_eq!(
        reasons[0].to_string(),
        "address changed from 192.0.2.11 to 192.0.2.13, which needs a restart of the daemon"
    );
}

const DS1: &str = "[[node]]\nname = \"ds1\"";
const SWITCH: &str = "[[node]]\nname = \"front\"\naddress = \"192.0.2.9\"\nroles = [\"switch\"]\n\n\
                      [[node]]\nname = \"ds1\"";

#[test]
fn candidates_must_agree_on_who_they_are() {
    let with = |section: &str| format!("[failover]\n{section}\n\n[[node]]\nname = \"ds1\"");
    assert_eq!(restart_keys("cs1", DS1, &with("")), ["failover"]);
    assert!(changes("ds1", DS1, &with("")).is_ok());
    let own = "cs1".parse().unwrap();
    let times = diff(
        &edited(DS1, &with("")),
        &edited(DS1, &with("detection = \"1s\"\npreempt = true")),
        &own,
    );
    assert!(times.unwrap().failover);
    let address = diff(
        &edited(DS1, &with("")),
        &edited(DS1, &with("address = \"routed\"")),
        &own,
    );
    assert_eq!(address.unwrap_err()[0].key, "failover");
}

#[test]
fn only_this_node_needs_the_restart() {
    assert!(changes("ds1", "\"eth0\"", "\"eth1\"").is_ok());
    assert!(changes("ds1", "roles = [\"cs\"]", "roles = [\"cs\", \"ds\"]").is_ok());
    // A node that is no connection server has no flow table.
    assert!(changes("ds1", "flows = 1048576", "flows = 1024").is_ok());
}

#[test]
fn a_node_that_is_gone_needs_a_restart() {
    let more =
        "[[node]]\nname = \"ds3\"\naddress = \"192.0.2.13\"\nroles = [\"ds\"]\n\n# What clients";
    let reasons = diff(
        &edited("# What clients", more),
        &edited("", ""),
        &"ds3".parse().unwrap(),
    );
    let reasons = reasons.unwrap_err();
    assert_eq!(
        (reasons[0].key, reasons[0].new.as_str()),
        ("name", "(no node)")
    );
}
