//! Options that programs set, read back from the I/O server's sockets.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use baton_saps::NetworkKind;
use socket2::SockRef;

use crate::bed::{Bed, CLIENT, CLIENT_V6, here, text};

/// The options of the socket with these ports. It is in this process, because the I/O server runs in it.
fn options(own: u16, peer: u16) -> String {
    let mut command = std::process::Command::new("/usr/bin/python3");
    command.arg(here("options_of.py"));
    command.args([std::process::id(), own.into(), peer.into()].map(|number| number.to_string()));
    text(&command.output().unwrap())
}

fn until(bed: &Bed, own: u16, peer: u16, wanted: &str) {
    let last = std::cell::RefCell::new(String::new());
    bed.wait(wanted, || {
        last.replace(options(own, peer));
        let is_so = *last.borrow() == wanted;
        if !is_so {
            eprintln!("still {}", last.borrow());
        }
        is_so
    });
}

#[test]
fn options_of_listeners_and_connections_are_those_of_the_clients_sockets() {
    for network in [NetworkKind::Tcp, NetworkKind::Quic] {
        let Some(bed) = Bed::over(network) else {
            return;
        };
        for (n, (bound, to)) in [
            ("0.0.0.0", "10.88.0.100"),
            ("::", "10.88.0.100"),
            ("::", "[fd88::100]"),
        ]
        .into_iter()
        .enumerate()
        {
            let port = 8000 + n as u16;
            let mut server = bed.start_python("options.py", &["serve", bound, &port.to_string()]);
            assert_eq!(server.line(), "listens");
            let mut stream = bed.connect(&format!("{to}:{port}"));
            let peer = stream.local_addr().unwrap().port();
            assert_eq!(server.line(), "accepted");
            // These are the listener's options, because nothing was set on the connection.
            until(
                &bed,
                port,
                peer,
                "nodelay 1 keepalive 1 idle 77 interval 75 probes 9 timeout 0 send - receive -\n",
            );
            server.say("set");
            assert_eq!(server.line(), "set");
            until(
                &bed,
                port,
                peer,
                "nodelay 0 keepalive 1 idle 77 interval 5 probes 3 timeout 9000 send 40000 receive 50000\n",
            );
            // The listener's own change affects the next connection.
            server.say("more");
            assert_eq!(server.line(), "more");
            let next = bed.connect(&format!("{to}:{port}"));
            let peer = next.local_addr().unwrap().port();
            until(
                &bed,
                port,
                peer,
                "nodelay 1 keepalive 0 idle 78 interval 75 probes 9 timeout 0 send - receive -\n",
            );
            // Bytes still arrive.
            stream.write_all(b"x").unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
        }
        assert_eq!(bed.counter("app_option_lost"), 0);
    }
}

#[test]
fn options_of_calls_are_those_of_the_outgoing_sockets() {
    for network in [NetworkKind::Tcp, NetworkKind::Quic] {
        let Some(bed) = Bed::over(network) else {
            return;
        };
        for host in [CLIENT, CLIENT_V6] {
            let listener = bed.client_listener(host);
            let port = listener.local_addr().unwrap().port();
            let mut caller = bed.start_python("options.py", &["call", host, &port.to_string()]);
            let (_stream, peer) = listener.accept().unwrap();
            assert_eq!(caller.line(), "connected");
            until(
                &bed,
                peer.port(),
                port,
                "nodelay 1 keepalive 1 idle 77 interval 75 probes 9 timeout 0 send - receive -\n",
            );
            caller.say("set");
            assert_eq!(caller.line(), "set");
            until(
                &bed,
                peer.port(),
                port,
                "nodelay 0 keepalive 1 idle 77 interval 5 probes 3 timeout 9000 send 40000 receive 50000\n",
            );
        }
        assert_eq!(bed.counter("app_option_lost"), 0);
    }
}

#[test]
fn options_of_a_connection_that_is_over_are_not_those_of_the_next_one() {
    let Some(bed) = Bed::new() else { return };
    for host in [CLIENT, CLIENT_V6] {
        let listener = bed.client_listener(host);
        let port = listener.local_addr().unwrap().port();
        let mut caller = bed.start_python("options.py", &["again", host, &port.to_string()]);
        let (first, _) = listener.accept().unwrap();
        assert_eq!(caller.line(), "connected");
        SockRef::from(&first)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
        drop(first);
        assert_eq!(caller.line(), "reset");
        let (_second, peer) = listener.accept().unwrap();
        assert_eq!(caller.line(), "connected");
        assert_eq!(caller.line(), "set");
        // The options that were set last have arrived, and none that were set before on the other socket.
        let found = || options(peer.port(), port);
        bed.wait("interval 5", || found().contains("interval 5 "));
        assert_eq!(
            found(),
            "nodelay 1 keepalive 0 idle 7200 interval 5 probes 9 timeout 0 send - receive -\n"
        );
    }
    assert_eq!(bed.counter("app_option_lost"), 0);
}
