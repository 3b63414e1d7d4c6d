//! Ports that another program has at the I/O server.

use std::io::Read as _;
use std::net::{Shutdown, SocketAddr, TcpListener};

use baton_virtual_sockets::Family;
use socket2::{Domain, SockRef, Socket, Type};

use crate::bed::{Bed, CLIENT, Program};
use crate::common::may_run;

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
fn a_port_that_another_program_has_is_refused_to_bind() {
    if !may_run("a_port_that_another_program_has_is_refused_to_bind") {
        return;
    }
    let bed = Bed::new();
    let bind = |address: &str| bed.io.run(|| TcpListener::bind(address).unwrap());
    let taken = bind("0.0.0.0:8000");
    let (v4, both) = (["names", "0.0.0.0", "8000"], ["names", "::", "8000"]);
    until(&bed, &v4, "refused EADDRINUSE");
    assert_eq!(start(&bed, &both).1, "refused EADDRINUSE");
    assert_eq!(
        start(&bed, &["names", "10.88.0.100", "8000"]).1,
        "refused EADDRINUSE"
    );
    assert!(bed.counter("app_bind_taken") >= 3);
    // The node's own loopback, the other IP version and other ports are free.
    for free in [
        ["names", "127.0.0.1", "8000", ""],
        ["names", "::", "8000", "only"],
        ["names", "0.0.0.0", "8001", ""],
    ] {
        let said = start(&bed, &free).1;
        assert_eq!(said, format!("listens {} {}", free[1], free[2]));
    }
    // A program with the port at the I/O server's own address is no obstacle. The socket is shut down, because a child
    // process of another test may have it between fork() and exec().
    SockRef::from(&taken).shutdown(Shutdown::Both).unwrap();
    drop(taken);
    let _own = bind("10.99.0.1:8000");
    let _server = until(&bed, &both, "listens :: 8000");
    let mut heard = String::new();
    (bed.connect("10.88.0.100:8000").read_to_string(&mut heard)).unwrap();
    assert!(heard.starts_with("::ffff:10.88.0.1 "), "{heard}");
}

#[test]
fn without_an_io_server_no_port_is_taken() {
    if !may_run("without_an_io_server_no_port_is_taken") {
        return;
    }
    let mut bed = Bed::new();
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
    if !may_run("a_port_that_is_refused_later_is_known_and_asked_for_again") {
        return;
    }
    let bed = Bed::new();
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
