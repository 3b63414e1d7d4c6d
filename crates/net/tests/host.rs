//! Tests links, addresses and settings, and that all changes are undone.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::net::IpAddr;

use baton_net::netlink::route::{LocalRoute, MarkRule};
use baton_net::undo::Step;
use baton_net::{Error, Host, Netlink, Sysctl, Undo};
use common::{Lan, Namespace, may_run};

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn links_by_name_and_by_address() {
    if !may_run("links_by_name_and_by_address") {
        return;
    }
    let lan = Lan::new();
    lan.server
        .ip("link set eth0 address 02:00:00:00:00:07 mtu 1400");
    lan.server.block_on(async || {
        let netlink = Netlink::open().unwrap();
        let link = netlink.link_named("eth0").await.unwrap();
        assert_eq!(
            (link.name.as_str(), link.mtu, link.up),
            ("eth0", 1400, true)
        );
        assert_eq!(link.mac, [2, 0, 0, 0, 0, 7]);
        assert_eq!(netlink.link_with(address("10.88.0.2")).await.unwrap(), link);
        assert_eq!(
            netlink.link_with(address("127.0.0.1")).await.unwrap().name,
            "lo"
        );

        let error = netlink.link_named("eth7").await.unwrap_err();
        assert!(
            matches!(&error, Error::NoLink { existing, .. } if existing.contains("eth0")),
            "{error}"
        );
        let error = netlink
            .link_with(address("10.88.0.1"))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("10.88.0.2 on eth0") && error.contains("127.0.0.1 on lo"),
            "{error}"
        );
    });
}

#[test]
fn addresses_come_and_go_once() {
    if !may_run("addresses_come_and_go_once") {
        return;
    }
    let namespace = Namespace::new("address");
    namespace.block_on(async || {
        let netlink = Netlink::open().unwrap();
        for vip in [address("10.77.0.100"), address("fd77::100")] {
            assert!(netlink.add_address("lo", vip).await.unwrap());
            assert!(!netlink.add_address("lo", vip).await.unwrap());
            assert!(netlink.has_address("lo", vip).await.unwrap());
            let shown = namespace.ip("address show dev lo");
            let prefix = if vip.is_ipv4() { 32 } else { 128 };
            assert!(shown.contains(&format!("{vip}/{prefix}")), "{shown}");
            assert!(!shown.contains("tentative"), "{shown}");
            assert!(netlink.remove_address("lo", vip).await.unwrap());
            assert!(!netlink.remove_address("lo", vip).await.unwrap());
            assert!(!netlink.has_address("lo", vip).await.unwrap());
        }
        let error = netlink
            .add_address("eth7", address("10.77.0.100"))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::NoLink { .. }));
    });
}

#[test]
fn settings_are_those_of_the_namespace() {
    if !may_run("settings_are_those_of_the_namespace") {
        return;
    }
    let (one, two) = (Namespace::new("one"), Namespace::new("two"));
    let sysctl = Sysctl::arp_ignore("lo").unwrap();
    let previous = one.run(|| sysctl.read().unwrap());
    assert_eq!(one.run(|| sysctl.write("8").unwrap()), previous);
    assert_eq!(one.run(|| sysctl.read().unwrap()), "8");
    assert_eq!(two.run(|| sysctl.read().unwrap()), previous);
    one.run(|| {
        assert!(sysctl.write("nonsense").is_err());
        let error = Sysctl::arp_ignore("eth7")
            .unwrap()
            .read()
            .unwrap_err()
            .to_string();
        assert!(error.contains("net/ipv4/conf/eth7/arp_ignore"), "{error}");
    });
}

/// Changes the host as a daemon does.
async fn change(host: &mut Host) {
    assert!(
        host.add_address("lo", address("10.77.0.100"))
            .await
            .unwrap()
    );
    assert!(
        !host
            .add_address("lo", address("10.77.0.101"))
            .await
            .unwrap()
    );
    host.set(&Sysctl::arp_ignore("all").unwrap(), "1").unwrap();
    host.set(&Sysctl::arp_ignore("all").unwrap(), "2").unwrap();
    assert!(
        host.add_rule(&MarkRule {
            mark: 7,
            table: 7777,
            priority: 100
        })
        .await
        .unwrap()
    );
    assert!(
        !host
            .add_rule(&MarkRule {
                mark: 7,
                table: 7777,
                priority: 100
            })
            .await
            .unwrap()
    );
    assert!(
        host.add_local_route(&LocalRoute { table: 7777 })
            .await
            .unwrap()
    );
    assert!(
        !host
            .add_local_route(&LocalRoute { table: 7777 })
            .await
            .unwrap()
    );
}

/// The state of everything that `change` touches, as `ip` and the kernel show it.
fn state(namespace: &Namespace) -> String {
    let arp = namespace.run(|| Sysctl::arp_ignore("all").unwrap().read().unwrap());
    let rules = namespace.ip("rule show");
    let routes = if rules.contains("7777") {
        namespace.ip("route show table 7777")
    } else {
        String::new()
    };
    format!(
        "{}{rules}{routes}arp_ignore {arp}\n",
        namespace.ip("-4 -brief address show")
    )
}

#[test]
fn the_host_is_taken_back_by_the_next_start() {
    if !may_run("the_host_is_taken_back_by_the_next_start") {
        return;
    }
    let namespace = Namespace::new("undo");
    namespace.ip("address add 10.77.0.101/32 dev lo"); // the operator's own address
    let dir = tempfile::tempdir().unwrap();
    let (journal, made) = (dir.path().join("undo.json"), dir.path().join("made"));
    let before = state(&namespace);
    namespace.block_on(async || {
        let mut host = Host::new(Netlink::open().unwrap(), Undo::load(&journal).unwrap());
        change(&mut host).await;
        fs::create_dir(&made).unwrap();
        host.undo()
            .record(Step::RemoveDir { path: made.clone() })
            .unwrap();
        fs::write(made.join("file"), "").unwrap();
        host.undo()
            .record(Step::RemoveFile {
                path: made.join("file"),
            })
            .unwrap();
        // The host is dropped without being unwound, as after kill -9.
    });
    let changed = state(&namespace);
    for sign in [
        "10.77.0.100",
        "lookup 7777",
        "local default dev lo",
        "arp_ignore 2",
    ] {
        assert!(changed.contains(sign), "{sign} not in\n{changed}");
    }
    namespace.block_on(async || {
        let mut host = Host::new(Netlink::open().unwrap(), Undo::load(&journal).unwrap());
        // A second start finds everything as it should be, and still knows what the first one added.
        assert!(
            !host
                .add_address("lo", address("10.77.0.100"))
                .await
                .unwrap()
        );
        host.set(&Sysctl::arp_ignore("all").unwrap(), "1").unwrap();
        let errors = host.unwind().await;
        assert!(errors.is_empty(), "{errors:?}");
        assert!(host.undo().steps().is_empty());
    });
    assert_eq!(state(&namespace), before);
    assert!(!journal.exists() && !made.exists());
    assert!(
        before.contains("10.77.0.101"),
        "the operator's own address stays: {before}"
    );
}

#[test]
fn unwinding_goes_on_past_errors_and_past_what_is_gone() {
    if !may_run("unwinding_goes_on_past_errors_and_past_what_is_gone") {
        return;
    }
    let namespace = Namespace::new("errors");
    let dir = tempfile::tempdir().unwrap();
    let (journal, full) = (dir.path().join("undo.json"), dir.path().join("full"));
    fs::create_dir_all(full.join("something")).unwrap();
    namespace.block_on(async || {
        let mut undo = Undo::load(&journal).unwrap();
        let netlink = Netlink::open().unwrap();
        netlink
            .add_address("lo", address("10.77.0.100"))
            .await
            .unwrap();
        let gone = Sysctl::arp_ignore("eth7").unwrap();
        let stuck = [
            Step::RemoveDir { path: full.clone() },
            Step::Sysctl {
                path: Sysctl::arp_ignore("lo").unwrap(),
                previous: "nonsense".into(),
            },
        ];
        for step in [
            Step::RemoveAddress {
                interface: "lo".into(),
                address: address("10.77.0.100"),
            },
            stuck[0].clone(),
            Step::RemoveAddress {
                interface: "eth7".into(),
                address: address("10.77.0.100"),
            },
            Step::Sysctl {
                path: gone,
                previous: "1".into(),
            },
            stuck[1].clone(),
            Step::RemoveRule(MarkRule {
                mark: 9,
                table: 9999,
                priority: 9,
            }),
            Step::RemoveRoute(LocalRoute { table: 9999 }),
            Step::RemoveFile {
                path: dir.path().join("none"),
            },
        ] {
            undo.record(step).unwrap();
        }
        let errors = undo.unwind(&netlink).await;
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(
            !netlink
                .has_address("lo", address("10.77.0.100"))
                .await
                .unwrap()
        );
        assert_eq!(undo.steps(), stuck);
        assert_eq!(
            Undo::load(&journal).unwrap().steps(),
            stuck,
            "in the old order, on disk too"
        );

        fs::remove_dir(full.join("something")).unwrap();
        assert_eq!(undo.unwind(&netlink).await.len(), 1);
        assert!(!full.exists());
    });
}

#[test]
fn only_what_is_ours_is_removed_on_request() {
    if !may_run("only_what_is_ours_is_removed_on_request") {
        return;
    }
    let namespace = Namespace::new("ours");
    namespace.ip("address add 10.77.0.101/32 dev lo");
    let dir = tempfile::tempdir().unwrap();
    namespace.block_on(async || {
        let undo = Undo::load(dir.path().join("undo.json")).unwrap();
        let mut host = Host::new(Netlink::open().unwrap(), undo);
        let (ours, theirs) = (address("10.77.0.100"), address("10.77.0.101"));
        host.add_address("lo", ours).await.unwrap();
        host.add_address("lo", theirs).await.unwrap();
        assert!(host.remove_address("lo", ours).await.unwrap());
        assert!(!host.remove_address("lo", theirs).await.unwrap());
        assert!(!host.netlink().has_address("lo", ours).await.unwrap());
        assert!(host.netlink().has_address("lo", theirs).await.unwrap());
        assert!(host.undo().steps().is_empty());
    });
}
