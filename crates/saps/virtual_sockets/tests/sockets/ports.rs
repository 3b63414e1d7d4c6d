//! Ports that another program has at the I/O server.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};

use baton_virtual_sockets::Family;
use socket2::{Domain, Socket, Type};

use crate::bed::{Bed, CLIENT, Program};

/// Starts a server, and returns it with its first line.
fn start(bed: &Bed, arguments: &[&str]) -> (Program, String) {
    let mut server = bed.start_python("serve.py", arguments);
    let said = server.line();
    (server, said)
}

/// Starts a server again and again until its first line is `wanted`.
fn until(bed: &Bed, arguments: &[&str], wanted: &str) -> Program {
    let started = std::cell::RefCell::new(None);
    bed.wait(wanted, || {
        let (server, said) = start(bed, arguments);
        let is_so = said == wanted;
        started.replace(Some(server));
        is_so
    });
    started.into_inner().unwrap()
}

#[test]
fn without_an_io_server_no_port_is_taken() {
    let Some(mut bed) = Bed::new() else { return };
    let taken = bed.io.run(|| TcpListener::bind("0.0.0.0:8000").unwrap());
    let v4 = ["names", "0.0.0.0", "8000"];
    until(&bed, &v4, "refused EADDRINUSE");
    bed.stop_io_server();
    drop(taken);
    let _server = until(&bed, &v4, "listens 0.0.0.0 8000");
    bed.start_io_server();
    let mut heard = String::new();
    (bed.connect("10.88.0.100:8000").read_to_string(&mut heard)).unwrap();
    assert!(heard.starts_with(CLIENT), "{heard}");
}

/// A socket that is bound and does not listen is noticed only when it is in the way.
#[test]
fn a_port_that_is_refused_later_is_known_and_asked_for_again() {
    let Some(bed) = Bed::new() else { return };
    let taken = bed.io.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let address: SocketAddr = "10.88.0.100:8000".parse().unwrap();
        socket.bind(&address.into()).unwrap();
        socket
    });
    let (mut server, said) = start(&bed, &["names", "0.0.0.0", "8000"]);
    assert_eq!(said, "listens 0.0.0.0 8000");
    bed.wait("a refusal", || !bed.refused().list().is_empty());
    let refused = bed.refused().list();
    assert_eq!((refused[0].port, refused[0].family), (8000, Family::V4));
    assert!(refused[0].reason.contains("in use"), "{refused:?}");
    drop(taken);
    let mut heard = String::new();
    (bed.connect("10.88.0.100:8000").read_to_string(&mut heard)).unwrap();
    assert!(heard.starts_with(CLIENT), "{heard}");
    assert_eq!(bed.refused().list(), []);
    server.0.kill().unwrap();
}
