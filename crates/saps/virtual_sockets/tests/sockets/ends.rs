//! How listeners, agents and nodes end, and what is left of them.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

use baton_dataplane::app_is_alive;

use crate::bed::{Bed, CLIENT};

#[test]
fn a_killed_server_listens_no_more() {
    let Some(bed) = Bed::new() else { return };
    let mut server = bed.start_python("serve.py", &["echo", "0.0.0.0", "8000"]);
    server.line();
    drop(bed.connect("10.88.0.100:8000"));
    // This is SIGKILL.
    server.0.kill().unwrap();
    server.0.wait().unwrap();
    let to = "10.88.0.100:8000".parse().unwrap();
    bed.wait("a refusal", || {
        let outcome = bed
            .client
            .run(|| std::net::TcpStream::connect_timeout(&to, Duration::from_secs(5)));
        outcome.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    });
    assert_eq!(bed.counter("app_listen_ended"), 1);
    // The port can be listened on again.
    let mut server = bed.start_python("serve.py", &["names", "0.0.0.0", "8000"]);
    server.line();
    let mut heard = String::new();
    (bed.connect("10.88.0.100:8000").read_to_string(&mut heard)).unwrap();
    assert!(heard.starts_with(CLIENT), "{heard}");
}

#[test]
fn a_call_that_is_given_up_leaves_nothing() {
    let Some(bed) = Bed::new() else { return };
    bed.client.exec(
        "nft",
        &["add table inet t; add chain inet t c { type filter hook input priority 0; }; add rule inet t c tcp dport 7 drop"],
    );
    let mut caller = bed.start_python("call.py", &["block", CLIENT, "7"]);
    bed.wait("a held SYN", || bed.counter("app_syn_held") > 0);
    caller.0.kill().unwrap();
    bed.wait("its end", || {
        bed.counters().all().contains(&("agent_calls_given_up", 1))
    });
    assert_eq!(bed.counter("app_call_ended"), 1);
}

#[test]
fn without_an_io_server_calls_fail_and_connections_are_reset() {
    let Some(mut bed) = Bed::new() else { return };
    let mut server = bed.start_python("serve.py", &["wait", "0.0.0.0", "8000"]);
    server.line();
    let mut stream = bed.connect("10.88.0.100:8000");
    stream.write_all(b"part").unwrap();
    bed.wait("an arrival", || bed.counter("app_accepted") == 1);
    bed.stop_io_server();
    assert_eq!(server.line(), "error 104");
    // The program should see ENETDOWN, but no ICMP error says exactly that.
    let said = bed.run("call.py", &["block", CLIENT, "9"]);
    assert!(said.contains("ended ENETUNREACH"), "{said}");
    bed.start_io_server();
    let _stream = bed.connect("10.88.0.100:8000");
    bed.wait("another arrival", || bed.counter("app_accepted") == 2);
}

#[test]
fn another_agent_takes_over_and_the_last_leaves_nothing() {
    let Some(mut bed) = Bed::new() else { return };
    let mut server = bed.start_python("serve.py", &["wait", "0.0.0.0", "8000"]);
    server.line();
    let mut names = bed.start_python("serve.py", &["names", "0.0.0.0", "8001"]);
    names.line();
    let mut stream = bed.connect("10.88.0.100:8000");
    stream.write_all(b"part").unwrap();
    bed.wait("an arrival", || bed.counter("app_accepted") == 1);

    // The agent's relays end with it, and neither end of them mistakes a part for the whole.
    bed.kill();
    assert_eq!(server.line(), "error 104");
    // A program that connects before the agent is missed gets its error with the SYN's retransmission.
    let said = bed.run("call.py", &["block", CLIENT, "9"]);
    assert!(said.contains("ended ECONNREFUSED"), "{said}");
    while app_is_alive(&bed.pins).unwrap() {
        thread::sleep(Duration::from_millis(10));
    }
    let said = bed.run("call.py", &["block", CLIENT, "9"]);
    assert!(said.contains("ended ENETUNREACH"), "{said}");

    // The next agent takes over the listeners.
    bed.start();
    let mut heard = String::new();
    (bed.connect("10.88.0.100:8001").read_to_string(&mut heard)).unwrap();
    assert!(heard.starts_with(CLIENT), "{heard}");
    let said = bed.run("call.py", &["block", CLIENT, "9"]);
    assert!(said.contains("ended ECONNREFUSED"), "{said}");
    assert_eq!(bed.counter("app_syn_let_go"), 1);
    assert_eq!(bed.counter("app_connect_no_agent"), 1);

    bed.take_down();
    assert!(!bed.pins.dir().exists());
    assert!(!bed.group.path().exists());
    // The programs go on, with sockets of this node.
    assert!(names.0.try_wait().unwrap().is_none());
}
