//! Pairs of plain and EOP ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use eop::{Error, Peer, ServerOptions};

use super::fleet::{Fleet, echo, either, server_either};
use super::{Session, connect};
use crate::plain::plain_server;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

#[test]
fn four_pairs_on_one_port() {
    // An EOP server that finds out what clients speak, with two kinds of EOP clients and a plain one.
    let mut fleet = Fleet::default();
    let at = fleet.serve_with(server_either(), |mut session| {
        let request = session.recv().unwrap().unwrap().to_vec();
        assert_eq!(session.can_redirect().unwrap(), request == b"eop");
        session.send(&request).unwrap();
    });
    let mut socket = connect(at, either()).unwrap();
    assert_eq!(socket.peer(), Peer::Eop);
    socket.send(b"eop").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"eop");
    let mut plain = TcpStream::connect(at).unwrap();
    plain.write_all(REQUEST).unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, REQUEST);
    fleet.end((socket, plain));

    // A plain server is asked once, and then known to be plain.
    let (at, server) = plain_server(b"", 4);
    for _ in 0..2 {
        let mut socket = connect(at, either()).unwrap();
        assert_eq!(socket.peer(), Peer::Plain);
        socket.send(b"plain").unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), b"plain");
    }
    let mut plain = TcpStream::connect(at).unwrap();
    plain.write_all(REQUEST).unwrap();
    let mut answer = Vec::new();
    plain.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, REQUEST);
    server.join().unwrap();
}

#[test]
fn redirects_lead_to_servers_that_find_out_too() {
    let mut fleet = Fleet::default();
    let there = fleet.serve_with(server_either(), echo("second"));
    let at = fleet.serve_with(server_either(), move |session| {
        session.redirect(None, there).unwrap();
    });
    let mut socket = connect(at, either()).unwrap();
    socket.send(b"x").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"second x");
    fleet.end(socket);
}

#[test]
fn servers_that_speak_first_are_heard() {
    // The server is plain, and the client asks.
    let (at, server) = plain_server(b"220 hello\r\n", 2);
    let mut socket = connect(at, either()).unwrap();
    assert_eq!(socket.peer(), Peer::Plain);
    assert_eq!(socket.recv().unwrap().unwrap(), b"220 hello\r\n");
    drop(socket);
    server.join().unwrap();

    // The server finds out what its clients speak: a plain client that waits, and an EOP client.
    let mut fleet = Fleet::default();
    let greets = |mut session: Session| session.send(b"220 hello\r\n").unwrap();
    let soon = ServerOptions {
        patience: Duration::from_millis(200),
        ..server_either()
    };
    let at = fleet.serve_with(soon, greets);
    let mut plain = TcpStream::connect(at).unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "220 hello\r\n");
    let at = fleet.serve_with(server_either(), greets);
    let mut socket = connect(at, either()).unwrap();
    assert_eq!(socket.peer(), Peer::Eop);
    assert_eq!(socket.recv().unwrap().unwrap(), b"220 hello\r\n");
    fleet.end(socket);
}

#[test]
fn a_plain_client_cannot_be_redirected() {
    let mut fleet = Fleet::default();
    let there = fleet.serve(echo("second"));
    let at = fleet.serve_with(server_either(), move |mut session| {
        session.recv().unwrap().unwrap();
        let refused = session.redirect(None, there).unwrap_err();
        assert!(matches!(refused, Error::Plain { .. }), "{refused}");
    });
    let mut plain = TcpStream::connect(at).unwrap();
    plain.write_all(REQUEST).unwrap();
    // The server closes the connection after its check.
    assert_eq!(plain.read(&mut [0]).unwrap(), 0);
    fleet.end(plain);
}
