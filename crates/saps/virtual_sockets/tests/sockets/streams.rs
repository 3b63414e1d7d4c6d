//! Connections of clients to programs, and their bytes.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use crate::bed::{Bed, CLIENT, CLIENT_V6, CLUSTER, CLUSTER_V6, bytes};
use crate::common::line;

#[test]
fn a_server_sees_the_clients_address() {
    let Some(bed) = Bed::new() else { return };
    for (n, (bound, only, peers)) in [
        ("0.0.0.0", false, vec![(CLIENT, CLUSTER, "")]),
        (CLUSTER, false, vec![(CLIENT, CLUSTER, "")]),
        ("::", true, vec![(CLIENT_V6, CLUSTER_V6, "")]),
        (
            "::",
            false,
            vec![(CLIENT, CLUSTER, "::ffff:"), (CLIENT_V6, CLUSTER_V6, "")],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let port = (8000 + n).to_string();
        let mut arguments = vec!["names", bound, &port];
        arguments.extend(only.then_some("only"));
        let mut server = bed.start_python("serve.py", &arguments);
        assert_eq!(server.line(), format!("listens {bound} {port}"));
        for (client, cluster, mapped) in peers {
            let to = if client.contains(':') {
                format!("[{cluster}]:{port}")
            } else {
                format!("{cluster}:{port}")
            };
            let mut stream = bed.connect(&to);
            let own = stream.local_addr().unwrap().port();
            let peer = format!("{mapped}{client} {own}");
            assert_eq!(
                line(&mut stream),
                format!("{peer} / {peer} / {mapped}{cluster} {port}"),
                "{bound}"
            );
        }
    }
    assert_eq!(bed.counter("app_accepted"), 5);
    assert_eq!(bed.counter("app_listen"), 4);
}

#[test]
fn bytes_and_half_closes_go_both_ways() {
    let Some(bed) = Bed::new() else { return };
    let mut server = bed.start_python("serve.py", &["echo", "0.0.0.0", "8000"]);
    server.line();
    for size in [0, 1, 4096, 64 << 20] {
        let sent = bytes(size);
        let mut stream = bed.connect("10.88.0.100:8000");
        let mut output = stream.try_clone().unwrap();
        let copy = sent.clone();
        let writer = thread::spawn(move || {
            output.write_all(&copy).unwrap();
            output.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        writer.join().unwrap();
        assert!(back == sent, "{} of {size} bytes came back", back.len());
    }
    // The program closes its direction first, and goes on reading.
    let mut server = bed.start_python("serve.py", &["half", "0.0.0.0", "8001"]);
    server.line();
    let mut stream = bed.connect("10.88.0.100:8001");
    let mut first = String::new();
    stream.read_to_string(&mut first).unwrap();
    assert_eq!(first, "first\n");
    stream.write_all(&bytes(100_000)).unwrap();
    drop(stream);
    assert_eq!(server.line(), "then 100000");
    bed.wait("five regular ends", || {
        bed.counters().all().contains(&("agent_finished", 5))
    });
}

#[test]
fn a_reset_of_one_end_is_one_of_the_other() {
    let Some(bed) = Bed::new() else { return };
    let mut resets = bed.start_python("serve.py", &["reset", "0.0.0.0", "8000"]);
    resets.line();
    let mut stream = bed.connect("10.88.0.100:8000");
    stream.write_all(b"x").unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

    let mut waits = bed.start_python("serve.py", &["wait", "0.0.0.0", "8001"]);
    waits.line();
    let stream = bed.connect("10.88.0.100:8001");
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
    // The number is that of ECONNRESET.
    assert_eq!(waits.line(), "error 104");

    // A program that is killed with bytes that it has not read or answered ends its connection with an error as well.
    let mut deaf = bed.start_python("serve.py", &["deaf", "0.0.0.0", "8002"]);
    deaf.line();
    let mut stream = bed.connect("10.88.0.100:8002");
    stream.write_all(b"unread").unwrap();
    assert_eq!(deaf.line(), "deaf");
    deaf.0.kill().unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn who_does_not_read_stops_its_sender() {
    let Some(bed) = Bed::new() else { return };
    let mut deaf = bed.start_python("serve.py", &["deaf", "0.0.0.0", "8000"]);
    deaf.line();
    let mut stream = bed.connect("10.88.0.100:8000");
    stream
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let chunk = vec![7; 1 << 20];
    let mut sent = 0;
    let error = loop {
        match stream.write(&chunk) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(
            sent < 256 << 20,
            "nobody reads, and {sent} bytes were taken"
        );
    };
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    deaf.line();
    deaf.say("read");
    drop(stream);
    assert_eq!(deaf.line(), format!("read {sent}"));
}

#[test]
fn who_does_not_read_hears_of_a_reset() {
    let Some(mut bed) = Bed::new() else { return };
    let mut deaf = bed.start_python("serve.py", &["deaf", "0.0.0.0", "8000"]);
    deaf.line();
    let full = || {
        let stream = bed.connect("10.88.0.100:8000");
        let patience = Some(Duration::from_millis(500));
        stream.set_write_timeout(patience).unwrap();
        while (&stream).write(&[7; 1 << 16]).is_ok() {}
        stream
    };
    // One connection ends because of its client, and one with the I/O server. Nothing is kept for either.
    let (first, _second) = (full(), full());
    SockRef::from(&first)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(first);
    let resets = |count| bed.counters().all().contains(&("agent_reset", count));
    bed.wait("a reset", || resets(1));
    bed.stop_io_server();
    let resets = |count| bed.counters().all().contains(&("agent_reset", count));
    bed.wait("another reset", || resets(2));
}
