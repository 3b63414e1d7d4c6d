//! Connections that programs make.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use crate::bed::{Bed, CLIENT, CLIENT_V6, CLUSTER, CLUSTER_V6};

/// Accepts one connection, and sends its peer's address over it.
fn greet(listener: TcpListener) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello\n");
        writeln!(stream, "{peer}").unwrap();
        peer.to_string()
    })
}

#[test]
fn a_program_sees_its_peer_and_the_clusters_address() {
    let Some(bed) = Bed::new() else { return };
    for way in ["block", "poll", "epoll", "select", "bound", "mapped"] {
        for (host, own) in [(CLIENT, CLUSTER), (CLIENT_V6, CLUSTER_V6)] {
            if way == "mapped" && host == CLIENT_V6 {
                continue;
            }
            let listener = bed.client_listener(host);
            let port = listener.local_addr().unwrap().port();
            let greeted = greet(listener);
            let said = bed.run("call.py", &[way, host, &port.to_string()]);
            assert!(said.contains("ended 0\n"), "{way}: {said}");
            let seen = greeted.join().unwrap();
            let mapped = if way == "mapped" { "::ffff:" } else { "" };
            assert!(
                said.contains(&format!("peer {mapped}{host} {port}\n")),
                "{way}: {said}"
            );
            assert!(said.contains(&format!("heard {seen}\n")), "{way}: {said}");
            let (_, port) = seen.rsplit_once(':').unwrap();
            assert!(
                said.contains(&format!("own {mapped}{own} {port}\n")),
                "{way}: {said}"
            );
        }
    }
    assert_eq!(bed.counter("app_connect"), 11);
    assert_eq!(bed.counter("app_connected"), 11);
    assert_eq!(bed.counter("app_call_ended"), 0);
}

/// Each connection has bytes of its own, of which none is lost, doubled or mixed up with another's.
#[test]
fn many_at_once() {
    let Some(bed) = Bed::new() else { return };
    let listener = bed.client_listener(CLIENT);
    let port = listener.local_addr().unwrap().port();
    // The thread ends with the process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut input = stream.try_clone().unwrap();
                std::io::copy(&mut input, &mut stream).unwrap();
            });
        }
    });
    let said = bed.run("many.py", &[CLIENT, &port.to_string(), "400"]);
    assert_eq!(said, "400 of 400 alike\n");
    assert_eq!(bed.counter("app_connected"), 400);
    bed.wait("400 regular ends", || {
        bed.counters().all().contains(&("agent_finished", 400))
    });
}

#[test]
fn a_failed_call_fails_as_it_does_at_the_far_end() {
    let Some(bed) = Bed::new() else { return };
    bed.io.ip("route add unreachable 10.98.1.0/24");
    bed.io.ip("route add unreachable fd98:1::/64");
    // The client drops what comes to this port and sends no error, like a machine that is not there.
    bed.client.exec(
        "nft",
        &["add table inet t; add chain inet t c { type filter hook input priority 0; }; add rule inet t c tcp dport 7 drop"],
    );
    for (namespace, retries) in [(&bed.io, "1"), (&bed.app, "1")] {
        namespace.exec(
            "sysctl",
            &["-q", "-w", &format!("net.ipv4.tcp_syn_retries={retries}")],
        );
    }
    for way in ["block", "poll", "epoll"] {
        for (host, port, error) in [
            (CLIENT, "9", "ECONNREFUSED"),
            (CLIENT_V6, "9", "ECONNREFUSED"),
            ("10.98.1.1", "9", "EHOSTUNREACH"),
            ("fd98:1::1", "9", "EHOSTUNREACH"),
            ("10.97.0.1", "9", "ENETUNREACH"),
            ("fd97::1", "9", "ENETUNREACH"),
            (CLIENT, "7", "ETIMEDOUT"),
        ] {
            let said = bed.run("call.py", &[way, host, port]);
            assert!(
                said.contains(&format!("ended {error}\n")),
                "{way} {host} {port}: {said}"
            );
            if way != "block" {
                assert!(
                    said.starts_with("began EINPROGRESS\npoll error\n"),
                    "{way} {host} {port}: {said}"
                );
            }
        }
    }
    assert_eq!(bed.counter("app_connect"), 21);
    assert_eq!(bed.counter("app_call_ended"), 21);
    assert_eq!(bed.counter("app_connected"), 0);
}
