//! Real sockets: clients and servers in threads, on one machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use eop::{
    Allow, EopKey, Error, Listener, Options, Peer, Resend, ServerOptions, Session, Speak, connect,
};

const ANY: &str = "127.0.0.1:0";

fn listen(options: ServerOptions) -> (Listener, SocketAddr) {
    let listener = Listener::bind(ANY.parse().unwrap(), options).unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// Serves so many connections, one after the other.
fn serve(
    listener: Listener,
    connections: usize,
    mut each: impl FnMut(Session) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..connections {
            each(listener.accept().unwrap());
        }
    })
}

fn end(servers: impl IntoIterator<Item = JoinHandle<()>>) {
    for server in servers {
        server.join().unwrap();
    }
}

/// Answers every request with a name and the request.
fn echo(name: &'static str) -> impl FnMut(Session) {
    move |mut session| {
        while let Some(request) = session.recv().unwrap() {
            let answer = [name.as_bytes(), b" ", request].concat();
            session.send(&answer).unwrap();
        }
    }
}

fn in_session() -> Options {
    Options {
        resend: Resend::Session { limit: 1 << 20 },
        ..Options::default()
    }
}

fn either() -> Options {
    Options {
        speak: Speak::Either,
        patience: Duration::from_millis(300),
        ..in_session()
    }
}

fn server_either() -> ServerOptions {
    ServerOptions {
        speak: Speak::Either,
        ..ServerOptions::default()
    }
}

/// An address where nobody listens.
fn nobody() -> SocketAddr {
    TcpListener::bind(ANY).unwrap().local_addr().unwrap()
}

#[test]
fn an_early_redirect_is_eredo() {
    let (first, at) = listen(ServerOptions::default());
    let (second, there) = listen(ServerOptions::default());
    let servers = [
        serve(first, 1, move |session| {
            session.redirect(None, there).unwrap()
        }),
        serve(second, 1, echo("second")),
    ];
    let mut socket = connect(at, Options::default()).unwrap();
    let mut redone = 0;
    let answer = loop {
        socket.send(b"hello").unwrap();
        match socket.recv() {
            Err(Error::Redo { unanswered: 1 }) => redone += 1,
            other => break other.unwrap().unwrap().to_vec(),
        }
    };
    // The server may have been quicker than the request.
    assert!(redone <= 1);
    assert_eq!(answer, b"second hello");
    assert_eq!(socket.server(), there);
    drop(socket);
    end(servers);
}

#[test]
fn or_not_seen_at_all() {
    let (first, at) = listen(ServerOptions::default());
    let (second, there) = listen(ServerOptions::default());
    let servers = [
        serve(first, 1, move |mut session| {
            session.recv().unwrap().unwrap();
            session.redirect(None, there).unwrap();
        }),
        serve(second, 1, echo("second")),
    ];
    let mut socket = connect(at, in_session()).unwrap();
    let large = vec![7; 200_000];
    socket.send(&large).unwrap();
    assert_eq!(
        socket.recv().unwrap().unwrap(),
        [b"second ", &large[..]].concat()
    );
    drop(socket);
    end(servers);
}

#[test]
fn a_request_that_nobody_reads_does_not_break_the_redirect() {
    let (first, at) = listen(ServerOptions::default());
    let (second, there) = listen(ServerOptions::default());
    let servers = [
        serve(first, 1, move |session| {
            session.redirect(None, there).unwrap()
        }),
        serve(second, 1, echo("second")),
    ];
    let mut socket = connect(at, in_session()).unwrap();
    // More than the buffers of both ends hold, so that it is still being sent.
    let large = vec![7; 12 << 20];
    let options = socket.send(&large);
    let Err(Error::Session(full)) = options else {
        panic!("{options:?}");
    };
    assert!(full.to_string().contains("more than the 1048576"), "{full}");
    drop(socket);
    let mut socket = connect(there, Options::default()).unwrap();
    socket.send(b"x").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"second x");
    drop(socket);
    end(servers);

    let (first, at) = listen(ServerOptions::default());
    let (second, there) = listen(ServerOptions::default());
    let servers = [
        serve(first, 1, move |session| {
            session.redirect(None, there).unwrap()
        }),
        serve(second, 1, echo("second")),
    ];
    let roomy = Options {
        resend: Resend::Session { limit: 16 << 20 },
        ..Options::default()
    };
    let mut socket = connect(at, roomy).unwrap();
    socket.send(&large).unwrap();
    let answer = socket.recv().unwrap().unwrap();
    assert_eq!(answer.len(), large.len() + 7);
    drop(socket);
    end(servers);
}

#[test]
fn a_late_redirect_answers_first_and_the_stream_goes_on_elsewhere() {
    const ROUNDS: usize = 300;
    let (first, at) = listen(ServerOptions::default());
    let (second, there) = listen(ServerOptions::default());
    // Each answers once and sends the client to the other one.
    let pass_on = |name: &'static str, target| {
        move |mut session: Session| {
            if let Some(request) = session.recv().unwrap() {
                let answer = [name.as_bytes(), b" ", request].concat();
                session.redirect(Some(&answer), target).unwrap();
            }
        }
    };
    let servers = [
        serve(first, ROUNDS / 2 + 1, pass_on("first", there)),
        serve(second, ROUNDS / 2, pass_on("second", at)),
    ];
    let mut socket = connect(at, Options::default()).unwrap();
    for round in 0..ROUNDS {
        let request = format!("{round}");
        socket.send(request.as_bytes()).unwrap();
        let name = ["first", "second"][round % 2];
        let expected = format!("{name} {round}");
        assert_eq!(socket.recv().unwrap().unwrap(), expected.as_bytes());
    }
    drop(socket);
    end(servers);
}

#[test]
fn a_target_that_is_down_brings_the_client_back() {
    let (first, at) = listen(ServerOptions::default());
    let down = nobody();
    let mut came = 0;
    let server = serve(first, 2, move |mut session| {
        came += 1;
        let request = session.recv().unwrap().unwrap().to_vec();
        if came == 1 {
            return session.redirect(None, down).unwrap();
        }
        assert_eq!(session.fell_back_from(), Some(down));
        session.send(&request).unwrap();
    });
    let mut socket = connect(at, in_session()).unwrap();
    socket.send(b"back").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"back");
    assert_eq!(socket.recv().unwrap(), None);
    server.join().unwrap();
}

#[test]
fn also_after_its_answer() {
    let (first, at) = listen(ServerOptions::default());
    let down = nobody();
    let mut came = 0;
    let server = serve(first, 2, move |mut session| {
        came += 1;
        let request = session.recv().unwrap().unwrap().to_vec();
        if came == 1 {
            return session.redirect(Some(&request), down).unwrap();
        }
        session.send(&request).unwrap();
    });
    let mut socket = connect(at, Options::default()).unwrap();
    for request in [b"one", b"two"] {
        socket.send(request).unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), request);
    }
    drop(socket);
    server.join().unwrap();
}

#[test]
fn a_target_that_is_not_allowed_is_not_visited() {
    let (first, at) = listen(ServerOptions::default());
    let (second, there) = listen(ServerOptions::default());
    let mut came = 0;
    let server = serve(first, 2, move |mut session| {
        came += 1;
        let request = session.recv().unwrap().unwrap().to_vec();
        if came == 1 {
            return session.redirect(None, there).unwrap();
        }
        session.send(&request).unwrap();
    });
    let options = Options {
        allow: Allow::only(vec!["192.0.2.0/24".parse().unwrap()]),
        ..in_session()
    };
    let mut socket = connect(at, options).unwrap();
    socket.send(b"stay").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"stay");
    assert_eq!(socket.not_allowed().unwrap().target, there);
    second.tcp().set_nonblocking(true).unwrap();
    assert!(second.accept().is_err(), "it was visited");
    drop(socket);
    server.join().unwrap();
}

#[test]
fn a_server_that_dies_with_a_request_is_an_error_and_not_an_end() {
    let (first, at) = listen(ServerOptions::default());
    let server = serve(first, 1, |mut session| {
        session.recv().unwrap().unwrap();
    });
    let mut socket = connect(at, in_session()).unwrap();
    socket.send(b"lost").unwrap();
    let error = socket.recv().unwrap_err();
    assert!(error.to_string().contains("1 request(s)"), "{error}");
    server.join().unwrap();
}

#[test]
fn tokens_open_servers_that_serve_only_redirected_clients() {
    let key = EopKey::of(&"05".repeat(32).parse().unwrap());
    let with_key = ServerOptions {
        key: Some(key),
        ..ServerOptions::default()
    };
    let guarded = ServerOptions {
        redirected_only: true,
        ..with_key.clone()
    };
    let (first, at) = listen(with_key);
    let (second, there) = listen(guarded);
    let servers = [
        serve(first, 1, move |session| {
            session.redirect(None, there).unwrap()
        }),
        serve(second, 2, |mut session| {
            match session.recv() {
                Ok(Some(request)) => {
                    let answer = request.to_vec();
                    session.send(&answer).unwrap();
                }
                Ok(None) => {}
                Err(error) => assert!(error.to_string().contains("shows no token"), "{error}"),
            };
        }),
    ];
    let mut socket = connect(at, in_session()).unwrap();
    socket.send(b"sent here").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"sent here");
    let mut straight = connect(there, in_session()).unwrap();
    straight.send(b"came alone").unwrap();
    assert!(straight.recv().is_err());
    end(servers);
}

/// A plain server that says `first`, then answers what it gets.
fn plain_server(first: &'static [u8], connections: usize) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind(ANY).unwrap();
    let at = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 100];
            let _ = stream.write_all(first);
            if let Ok(count @ 1..) = stream.read(&mut bytes) {
                let _ = stream.write_all(&bytes[..count]);
            }
        }
    });
    (at, server)
}

#[test]
fn four_pairs_on_one_port() {
    // An EOP server that finds out: EOP clients of both kinds, and a plain one.
    let (listener, at) = listen(server_either());
    let server = serve(listener, 2, |mut session| {
        let request = session.recv().unwrap().unwrap().to_vec();
        assert_eq!(session.can_redirect().unwrap(), request == b"eop");
        session.send(&request).unwrap();
    });
    let mut socket = connect(at, either()).unwrap();
    assert_eq!(socket.peer(), Peer::Eop);
    socket.send(b"eop").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"eop");
    let mut plain = TcpStream::connect(at).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "GET / HTTP/1.1\r\n\r\n");
    server.join().unwrap();

    // A plain server: it is asked once, and remembered.
    let (at, server) = plain_server(b"", 3);
    for _ in 0..2 {
        let mut socket = connect(at, either()).unwrap();
        assert_eq!(socket.peer(), Peer::Plain);
        socket.send(b"plain").unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), b"plain");
    }
    server.join().unwrap();
}

#[test]
fn redirects_lead_to_servers_that_find_out_too() {
    let (first, at) = listen(server_either());
    let (second, there) = listen(server_either());
    let servers = [
        serve(first, 1, move |session| {
            session.redirect(None, there).unwrap()
        }),
        serve(second, 1, echo("second")),
    ];
    let mut socket = connect(at, either()).unwrap();
    socket.send(b"x").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"second x");
    drop(socket);
    end(servers);
}

#[test]
fn servers_that_speak_first_are_heard() {
    // A plain one, by a client that asks.
    let (at, server) = plain_server(b"220 hello\r\n", 2);
    let mut socket = connect(at, either()).unwrap();
    assert_eq!(socket.peer(), Peer::Plain);
    assert_eq!(socket.recv().unwrap().unwrap(), b"220 hello\r\n");
    drop(socket);
    server.join().unwrap();

    // One that finds out, to a plain client that waits, and to one of its own.
    let (listener, at) = listen(server_either());
    let server = serve(listener, 2, |mut session| {
        session.send(b"220 hello\r\n").unwrap()
    });
    let mut plain = TcpStream::connect(at).unwrap();
    let mut answer = String::new();
    plain.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "220 hello\r\n");
    let mut socket = connect(at, either()).unwrap();
    assert_eq!(socket.peer(), Peer::Eop);
    assert_eq!(socket.recv().unwrap().unwrap(), b"220 hello\r\n");
    server.join().unwrap();
}

#[test]
fn a_plain_client_cannot_be_redirected() {
    let (listener, at) = listen(server_either());
    let server = serve(listener, 1, move |mut session| {
        session.recv().unwrap().unwrap();
        let refused = session.redirect(None, at).unwrap_err();
        assert!(matches!(refused, Error::Plain { .. }), "{refused}");
    });
    let mut plain = TcpStream::connect(at).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    server.join().unwrap();
}
