//! Which changes a reload can apply, and which need a restart.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use baton_config::{Changes, Config, NodeName, RestartReason, diff};
use common::{SAMPLE, parse, routed};

/// The sample with one text replaced by another.
fn edited(from: &str, to: &str) -> Config {
    assert!(SAMPLE.contains(from), "{from}");
    parse(&SAMPLE.replacen(from, to, 1)).unwrap().config
}

fn changes(own: &str, from: &str, to: &str) -> Result<Option<Changes>, Vec<RestartReason>> {
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
    assert_eq!(changes("cs1", "", ""), Ok(None));
}

/// Checks that a reload at `cs1` applies `to` in place of `from`: whether a key changes, and how many nodes and
/// services are new or changed.
#[track_caller]
fn applied(text: &str, from: &str, to: &str, (keys, nodes, services): (bool, usize, usize)) {
    assert!(text.contains(from), "{from}");
    let config = |text: &str| parse(text).unwrap().config;
    let (old, new) = (config(text), config(&text.replacen(from, to, 1)));
    let expected = Changes {
        keys,
        nodes,
        services,
    };
    let got = diff(&old, &new, &"cs1".parse().unwrap());
    assert_eq!(got, Ok(Some(expected)), "{from} becomes {to}");
}

#[test]
fn a_reload_takes_over() {
    for key in [
        "previous_key_file = \"/etc/baton/cluster.previous.key\"",
        "hash_key_file = \"/etc/baton/hash.key\"",
    ] {
        applied(SAMPLE, &format!("# {key}"), key, (true, 0, 0));
    }
    for (from, to) in [
        ("silence = \"1s\"", "silence = \"2s\""),
        ("closing = \"60s\"", "closing = \"30s\""),
        ("watch = false", "watch = true"),
    ] {
        applied(SAMPLE, from, to, (false, 0, 0));
    }
    applied(SAMPLE, "192.0.2.12", "192.0.2.13", (false, 1, 0));
    // This is not the policy of [forwarding], which is commented out.
    let (old, new) = ("\npolicy = \"round-robin\"", "\npolicy = \"client\"");
    applied(SAMPLE, old, new, (false, 0, 1));
}

#[test]
fn nodes_come_and_go() {
    let more =
        "[[node]]\nname = \"ds3\"\naddress = \"192.0.2.13\"\nroles = [\"ds\"]\n\n# What clients";
    applied(SAMPLE, "# What clients", more, (false, 1, 0));
    let longer = SAMPLE.replacen("# What clients", more, 1);
    applied(&longer, more, "# What clients", (false, 0, 0));
}

#[test]
fn pools_and_routes_change_their_service() {
    let old = routed();
    for (from, to) in [
        ("policy = \"path\"", "policy = \"lard\""),
        ("path = \"/images/\"", "path = \"/img/\""),
        ("host = \"*.example.org\"", "host = \"example.org\""),
    ] {
        applied(&old, from, to, (false, 0, 1));
    }
    // A pool that has its nodes from the service changes with it.
    let inheriting = old.replace("nodes = [\"ds1\"]  ", "#  ");
    applied(
        &inheriting,
        "[\"ds1\", \"ds2\"]",
        "[\"ds2\"]",
        (false, 0, 1),
    );

    let expression = "[[service.route]]\nheader = { a = \"~b\" }\npool = \"images\"\n";
    let with_expression = old.clone() + expression;
    applied(&with_expression, "\"~b\"", "\"b\"", (false, 0, 1));
    let more = "[[service.pool]]\nname = \"more\"\n[[service.route]]\npool = \"more\"\n";
    let longer = old.clone() + more;
    applied(&longer, more, "", (false, 0, 1));
    let first = format!("{more}[[service.pool]]");
    applied(&old, "[[service.pool]]", &first, (false, 0, 1));
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
    assert!(times.unwrap().is_some());
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
