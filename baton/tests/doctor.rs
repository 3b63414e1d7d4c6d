//! `baton doctor` as a whole: the real binary, on this machine and in namespaces with faults.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../crates/net/tests/common/mod.rs"]
mod common;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

use common::{Namespace, may_run};
use serde_json::Value;

#[test]
fn json_on_this_machine() {
    let output = doctor(&["--json"]);
    let findings = findings(&output);
    for name in [
        "privileges",
        "kernel",
        "btf",
        "bpf_fs",
        "programs",
        "interface",
        "tcp_syncookies",
        "clock",
    ] {
        named(&findings, name);
    }
    for finding in &findings {
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(["good", "advice", "bad"].contains(&verdict), "{finding}");
        assert!(finding["found"].is_string(), "{finding}");
        assert_eq!(finding["remedy"].is_null(), verdict == "good", "{finding}");
    }
    let bad = findings.iter().any(|finding| finding["verdict"] == "bad");
    assert_eq!(output.status.success(), !bad);
}

#[test]
fn for_people() {
    let text = String::from_utf8(doctor(&[]).stdout).unwrap();
    let json = findings(&doctor(&["--json"]));
    for finding in &json {
        assert!(text.contains(finding["name"].as_str().unwrap()), "{text}");
    }
    assert!(text.contains(&format!("{} checks: ", json.len())), "{text}");
}

#[test]
fn an_interface_that_is_not_there() {
    let output = doctor(&["--json", "--interface", "no-such-nic"]);
    let found = named(&findings(&output), "interface");
    assert_eq!(found["verdict"], "bad");
    assert!(
        found["found"].as_str().unwrap().contains("no-such-nic"),
        "{found}"
    );
    assert!(!output.status.success());
}

#[test]
fn a_configuration_that_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("baton.toml");
    fs::write(&file, "[cluster]\nkee = 1\n").unwrap();
    let output = doctor(&["--json", "--config", file.to_str().unwrap()]);
    let found = named(&findings(&output), "config");
    assert_eq!(found["verdict"], "bad");
    assert!(found["found"].as_str().unwrap().contains("kee"), "{found}");
    assert!(!output.status.success());
}

#[test]
fn no_syn_cookies_no_adoption() {
    let Some((host, _peer)) = pair("no_syn_cookies_no_adoption") else {
        return;
    };
    let cookies =
        |value: &str| host.run(|| fs::write("/proc/sys/net/ipv4/tcp_syncookies", value).unwrap());
    let look = || host.run(|| doctor(&["--json", "--interface", "eth0"]));

    cookies("1");
    assert_eq!(
        named(&findings(&look()), "tcp_syncookies")["verdict"],
        "good"
    );
    cookies("0");
    let output = look();
    let found = named(&findings(&output), "tcp_syncookies");
    assert_eq!(found["verdict"], "bad");
    assert_eq!(found["found"], "0");
    let remedy = found["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("sysctl -w net.ipv4.tcp_syncookies=1"),
        "{remedy}"
    );
    assert!(!output.status.success());
}

#[test]
fn a_data_server_of_a_lan() {
    let Some((host, peer)) = pair("a_data_server_of_a_lan") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("baton.toml");
    fs::write(&file, configuration(directory.path().to_str().unwrap())).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let look = || findings(&host.run(|| doctor(&["--json", "--config", file])));
    let verdict = |findings: &[Value], name| named(findings, name)["verdict"].clone();

    let empty = look();
    assert_eq!(verdict(&empty, "this_node"), "good");
    assert_eq!(
        verdict(&empty, "interface"),
        "bad",
        "the address is nowhere: {empty:#?}"
    );
    assert_eq!(verdict(&empty, "address"), "bad");
    assert_eq!(verdict(&empty, "servers"), "advice");
    assert_eq!(
        verdict(&empty, "neighbors"),
        "bad",
        "there is no route: {empty:#?}"
    );
    assert_eq!(verdict(&empty, "node"), "good", "none runs: {empty:#?}");
    assert!(
        empty.iter().all(|finding| finding["name"] != "xdp"),
        "not a connection server"
    );

    host.ip("addr add 192.0.2.11/24 dev eth0");
    host.ip("link set eth0 up");
    peer.ip("addr add 192.0.2.2/24 dev eth0");
    peer.ip("link set eth0 up");
    let _server = host.run(|| std::net::TcpListener::bind("0.0.0.0:80").unwrap());
    let full = look();
    for name in [
        "config",
        "interface",
        "address",
        "servers",
        "neighbors",
        "cluster_address",
        "programs",
        "response_route",
    ] {
        assert_eq!(verdict(&full, name), "good", "{name}: {full:#?}");
    }

    // Responses to clients elsewhere leave by an interface at which no program sees them.
    host.ip("link add eth1 type veth peer name eth1-peer");
    host.ip("link set eth1 up");
    host.ip("route add default dev eth1");
    let elsewhere = named(&look(), "response_route");
    assert_eq!(elsewhere["verdict"], "bad", "{elsewhere}");
    assert!(
        elsewhere["found"].as_str().unwrap().contains("by eth1"),
        "{elsewhere}"
    );
    host.ip("route replace default via 192.0.2.2");
    let back = named(&look(), "response_route");
    assert_eq!(back["verdict"], "good", "{back}");

    // What a container engine does for a published port.
    let translates = |rule: &str| {
        let rules = format!(
            "table ip nat {{ chain prerouting {{ type nat hook prerouting priority dstnat; {rule}; }}; }}"
        );
        let done = host.run(|| Command::new("nft").arg(&rules).output().unwrap());
        assert!(done.status.success(), "nft '{rules}': {done:?}");
    };
    assert_eq!(verdict(&full, "nat"), "good", "{full:#?}");
    translates("ip daddr 192.0.2.100 tcp dport 80 dnat to 172.17.0.2:80");
    let published = named(&look(), "nat");
    assert_eq!(published["verdict"], "bad", "{published}");
    let found = published["found"].as_str().unwrap();
    assert!(found.contains("172.17.0.2:80"), "{published}");
    let done = host.run(|| Command::new("nft").arg("flush ruleset").output().unwrap());
    assert!(done.status.success(), "{done:?}");

    // The connection server holds the cluster address, as it should; then somebody who is no node.
    peer.ip("addr add 192.0.2.100/32 dev eth0");
    let rightly = named(&look(), "cluster_address");
    assert_eq!(rightly["verdict"], "good");
    assert!(
        rightly["found"].as_str().unwrap().contains("cs1"),
        "{rightly}"
    );
    peer.ip("addr del 192.0.2.2/24 dev eth0");
    peer.ip("link set eth0 address 02:00:00:00:00:07");
    host.ip("neigh flush all");
    let wrongly = look();
    assert_eq!(verdict(&wrongly, "cluster_address"), "bad", "{wrongly:#?}");
    assert_eq!(verdict(&wrongly, "neighbors"), "advice", "{wrongly:#?}");
}

#[test]
fn a_connection_server_on_veth() {
    let Some((host, peer)) = pair("a_connection_server_on_veth") else {
        return;
    };
    let look = || findings(&host.run(|| doctor(&["--json", "--interface", "eth0"])));
    assert_eq!(named(&look(), "interface")["verdict"], "bad", "it is down");

    host.ip("link set eth0 up");
    peer.ip("link set eth0 up");
    let up = look();
    assert_eq!(named(&up, "interface")["verdict"], "good");
    assert_eq!(
        named(&up, "xdp")["verdict"],
        "good",
        "veth knows native XDP: {up:#?}"
    );
    assert_eq!(named(&up, "xdp_place")["verdict"], "good");
    assert_eq!(
        named(&up, "xdp_veth")["verdict"],
        "bad",
        "the peer takes nothing: {up:#?}"
    );
    assert_eq!(named(&up, "lro")["verdict"], "good");

    host.ip("link set eth0 mtu 1400");
    assert_eq!(named(&look(), "mtu")["verdict"], "advice");
}

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.arg("doctor").args(arguments).output().unwrap()
}

fn findings(output: &Output) -> Vec<Value> {
    let parsed = serde_json::from_slice(&output.stdout);
    let Ok(Value::Array(findings)) = parsed else {
        panic!("no array of findings: {parsed:?}\n{output:?}");
    };
    findings
}

fn named(findings: &[Value], name: &str) -> Value {
    let mut all = findings.iter().filter(|finding| finding["name"] == name);
    let found = all
        .next()
        .unwrap_or_else(|| panic!("no finding {name}: {findings:#?}"));
    assert!(all.next().is_none(), "two findings {name}");
    found.clone()
}

fn configuration(run_dir: &str) -> String {
    let key = "0123456789abcdef".repeat(4);
    format!(
        r#"
[cluster]
key = "{key}"
[local]
name = "ds1"
run_dir = "{run_dir}"
[[node]]
name = "cs1"
address = "192.0.2.2"
roles = ["cs"]
[[node]]
name = "ds1"
address = "192.0.2.11"
roles = ["ds"]
[[service]]
name = "web"
address = "192.0.2.100"
port = 80
"#
    )
}

/// A network namespace with an interface `eth0`, a veth, and the namespace of its other end. `None`, with a reason,
/// where a test may not make any.
fn pair(test: &str) -> Option<(Namespace, Namespace)> {
    if !may_run(test) {
        return None;
    }
    let (host, peer) = (Namespace::new("host"), Namespace::new("peer"));
    host.ip(&format!(
        "link add eth0 type veth peer name eth0 netns {}",
        peer.name
    ));
    Some((host, peer))
}
