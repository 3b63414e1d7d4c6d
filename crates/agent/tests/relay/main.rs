//! The relay between clients and an MPTCP listener, with a client in another namespace.
//!
//! In place of the data server program, which assigns adopted connections to the relay's listener, nftables' tproxy
//! assigns new ones. In both cases the relay accepts a connection between the client and the cluster address.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bed;
#[path = "../../../net/tests/common/mod.rs"]
mod common;

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use baton_agent::Routing;
use baton_net::Sysctl;
use bed::{
    Bed, CLIENT, CLUSTER, OTHER, PATIENCE, WEB, all_local, echo, line, mptcp_server, whoami,
};
use socket2::SockRef;

/// The server's end of a relayed connection is on this host as well, and is not counted once more.
#[test]
fn a_relayed_connection_counts_once() {
    let Some(bed) = Bed::new() else { return };
    mptcp_server(&bed.lan.server, all_local(Ipv4Addr::UNSPECIFIED), echo);
    let mut stream = bed.connect(0, WEB).unwrap();
    line(&mut stream);
    let counted = bed
        .lan
        .server
        .run(|| baton_net::Connections::count().unwrap().at(WEB));
    assert_eq!(counted, 1);
}

#[test]
fn the_server_sees_the_clients_address() {
    let Some(bed) = Bed::new() else { return };
    mptcp_server(&bed.lan.server, all_local(Ipv4Addr::UNSPECIFIED), echo);
    let mut stream = bed.connect(0, WEB).unwrap();
    let SocketAddr::V4(own) = stream.local_addr().unwrap() else {
        panic!("IPv4")
    };
    assert_eq!(*own.ip(), CLIENT);
    // The client's own connection uses the client's port already.
    let seen = line(&mut stream);
    assert_eq!(*seen.ip(), CLIENT);
    assert_ne!(seen, own);

    let sent: Vec<u8> = (0..4 << 20)
        .map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut output = stream.try_clone().unwrap();
    let writer = {
        let sent = sent.clone();
        thread::spawn(move || {
            output.write_all(&sent).unwrap();
            // The other direction stays open: the server's answer is complete nevertheless.
            output.shutdown(Shutdown::Write).unwrap();
        })
    };
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert!(
        received == sent,
        "{} of {} bytes came back",
        received.len(),
        sent.len()
    );
    bed.wait(|counters| &counters.finished, 1);
}

#[test]
fn a_server_at_the_cluster_address_sees_the_clients_address() {
    let Some(bed) = Bed::new() else { return };
    mptcp_server(&bed.lan.server, all_local(CLUSTER), echo);
    let mut stream = bed.connect(0, WEB).unwrap();
    let seen = line(&mut stream);
    assert_eq!(*seen.ip(), CLIENT);
    stream.write_all(b"hello").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).unwrap();
    assert_eq!(received, "hello");
    assert_eq!(
        bed.resets(),
        0,
        "nobody outside heard of the second connection"
    );
}

/// The client's connection here and the server's are in TIME_WAIT then. Neither may matter.
#[test]
fn ports_are_reused_at_once() {
    let Some(bed) = Bed::new() else { return };
    mptcp_server(&bed.lan.server, all_local(Ipv4Addr::UNSPECIFIED), whoami);
    for round in 0..30 {
        let mut stream = bed.connect_again(4321, WEB);
        assert_eq!(*line(&mut stream).ip(), CLIENT, "round {round}");
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "round {round}");
    }
    bed.wait(|counters| &counters.finished, 30);
    assert_eq!(bed.counters.failed.load(Ordering::Relaxed), 0);
}

#[test]
fn one_client_port_to_two_services() {
    let Some(bed) = Bed::new() else { return };
    mptcp_server(
        &bed.lan.server,
        SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 80),
        echo,
    );
    mptcp_server(
        &bed.lan.server,
        SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 81),
        echo,
    );
    let own = SocketAddrV4::new(CLIENT, 4321);
    let mut web = bed.connect(own.port(), WEB).unwrap();
    let mut other = bed.connect(own.port(), OTHER).unwrap();
    assert_eq!(*line(&mut web).ip(), CLIENT);
    assert_eq!(*line(&mut other).ip(), CLIENT);
}

#[test]
fn a_broken_half_breaks_the_other() {
    let Some(bed) = Bed::new() else { return };
    let (told, tell) = mpsc::channel();
    let told = std::sync::Mutex::new(told);
    mptcp_server(
        &bed.lan.server,
        all_local(Ipv4Addr::UNSPECIFIED),
        move |mut stream| {
            writeln!(stream, "{}", stream.peer_addr().unwrap()).unwrap();
            let mut word = [0; 5];
            stream.read_exact(&mut word).unwrap();
            if &word == b"break" {
                SockRef::from(&stream)
                    .set_linger(Some(Duration::ZERO))
                    .unwrap();
                return;
            }
            writeln!(stream, "heard").unwrap();
            let end = stream.read(&mut [0]).map_err(|error| error.kind());
            told.lock().unwrap().send(end).unwrap();
        },
    );
    // The server resets: the client must not take what it has for the whole.
    let mut stream = bed.connect(0, WEB).unwrap();
    line(&mut stream);
    stream.write_all(b"break").unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    // The client resets, and the server sees that.
    let mut stream = bed.connect(0, WEB).unwrap();
    line(&mut stream);
    stream.write_all(b"hello").unwrap();
    // The reset waits until the word has passed the relay, so that it does not overtake it.
    assert_eq!(common::line(&mut stream), "heard");
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
    assert_eq!(
        tell.recv_timeout(PATIENCE).unwrap(),
        Err(io::ErrorKind::ConnectionReset)
    );
    bed.wait(|counters| &counters.failed, 1);
    bed.wait(|counters| &counters.reset, 1);
}

#[test]
fn without_a_server_the_client_is_reset() {
    let Some(bed) = Bed::new() else { return };
    // The reset may be there before the client has seen that it is connected.
    let outcome = bed
        .connect(0, WEB)
        .and_then(|mut stream| stream.read(&mut [0]));
    assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    bed.wait(|counters| &counters.failed, 1);
    assert_eq!(
        bed.resets(),
        1,
        "the client's own connection, and none of the refusals"
    );
}

/// Such a server may be a page of the machine's own, for which no client is meant.
#[test]
fn what_listens_on_127_0_0_1_alone_is_not_for_clients() {
    let Some(bed) = Bed::new() else { return };
    mptcp_server(&bed.lan.server, all_local(Ipv4Addr::LOCALHOST), whoami);
    let outcome = bed
        .connect(0, WEB)
        .and_then(|mut stream| stream.read(&mut [0]));
    assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    bed.wait(|counters| &counters.failed, 1);
}

#[test]
fn the_listener_itself_is_no_service() {
    let Some(bed) = Bed::new() else { return };
    let port = bed.relay_port;
    let mut stream = bed
        .lan
        .server
        .run(|| TcpStream::connect(("127.0.0.1", port)).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let error = stream.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    bed.wait(|counters| &counters.foreign, 1);
    assert_eq!(
        bed.counters.accepted.load(Ordering::Relaxed),
        1,
        "it did not relay to itself"
    );
}

#[test]
fn the_host_is_left_as_it_was() {
    let Some(mut bed) = Bed::new() else { return };
    let state = |bed: &Bed| {
        let read = |sysctl: Sysctl| bed.lan.server.run(|| sysctl.read().unwrap());
        let accept = read(Sysctl::tcp_fwmark_accept()) + &read(Sysctl::fwmark_reflect());
        (
            bed.lan.server.ip("rule show"),
            bed.lan.server.ip("route show table all"),
            accept,
        )
    };
    let (rules, routes, accept) = state(&bed);
    let table = Routing::default().table.to_string();
    assert!(
        rules.contains(&table) && routes.contains(&table),
        "{rules}{routes}"
    );
    assert_eq!(accept, "11");
    bed.stop();
    let (rules, routes, accept) = state(&bed);
    assert!(
        !rules.contains(&table) && !routes.contains(&table),
        "{rules}{routes}"
    );
    assert_eq!(accept, "00");
}
