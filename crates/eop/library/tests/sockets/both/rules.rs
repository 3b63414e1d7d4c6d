//! Redirects: early, late, to a server that does not answer, to a server that is not allowed, and with tokens.

use std::os::fd::AsFd as _;

use eop::{Allow, EopKey, Error, Options, Resend, ServerOptions};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::connect;
use super::fleet::{ANY, ANY6, Fleet, echo, in_session, listen, nobody, redirects_the_first};

#[test]
fn an_early_redirect_is_eredo() {
    let mut fleet = Fleet::default();
    let there = fleet.serve(echo("second"));
    let at = fleet.serve(move |session| session.redirect(None, there).unwrap());
    let mut socket = connect(at, Options::default()).unwrap();
    let mut redone = 0;
    let answer = loop {
        socket.send(b"hello").unwrap();
        match socket.recv() {
            Err(Error::Redo { unanswered: 1 }) => redone += 1,
            other => break other.unwrap().unwrap().to_vec(),
        }
    };
    // The server may have redirected before the request was sent.
    assert!(redone <= 1);
    assert_eq!(answer, b"second hello");
    assert_eq!(socket.server(), there);
    fleet.end(socket);
}

#[test]
fn or_not_seen_at_all() {
    let mut fleet = Fleet::default();
    let there = fleet.serve(echo("second"));
    let at = fleet.serve(move |mut session| {
        session.recv().unwrap().unwrap();
        session.redirect(None, there).unwrap();
    });
    let mut socket = connect(at, in_session()).unwrap();
    let large = vec![7; 200_000];
    socket.send(&large).unwrap();
    assert_eq!(
        socket.recv().unwrap().unwrap(),
        [b"second ", &large[..]].concat()
    );
    fleet.end(socket);
}

#[test]
fn a_request_that_nobody_reads_does_not_break_the_redirect() {
    let mut fleet = Fleet::default();
    let there = fleet.serve(echo("second"));
    let at = fleet.serve(move |session| session.redirect(None, there).unwrap());
    let roomy = Options {
        resend: Resend::Session { limit: 16 << 20 },
        ..Options::default()
    };
    let mut socket = connect(at, roomy).unwrap();
    // The request is larger than the buffers of both ends, so that it is still being sent.
    let large = vec![7; 12 << 20];
    socket.send(&large).unwrap();
    let answer = socket.recv().unwrap().unwrap();
    assert_eq!(answer.len(), large.len() + 7);
    fleet.end(socket);
}

#[test]
fn what_cannot_be_kept_is_not_sent() {
    let mut fleet = Fleet::default();
    let at = fleet.serve(echo("only"));
    let mut socket = connect(at, in_session()).unwrap();
    let full = socket.send(&vec![7; 2 << 20]).unwrap_err();
    assert!(full.to_string().contains("more than the 1048576"), "{full}");
    socket.send(b"x").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"only x");
    fleet.end(socket);
}

#[test]
fn who_hears_the_server_first_hears_it_at_once() {
    let mut fleet = Fleet::default();
    let at = fleet.serve(|mut session| {
        let mut greeting = eop::Message::from(&b"220"[..]);
        greeting.extend_from_slice(b" hello");
        session.send_message(&mut greeting).unwrap();
        assert_eq!(session.recv().unwrap(), None);
    });
    let mut socket = connect(at, Options::default()).unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"220 hello");
    fleet.end(socket);
}

#[test]
fn a_target_that_is_down_brings_the_client_back() {
    for any in [ANY, ANY6] {
        let mut fleet = Fleet::default();
        let (_taken, target) = nobody(any);
        let at = fleet.serve(redirects_the_first(false, target));
        let mut socket = connect(at, in_session()).unwrap();
        socket.send(b"back").unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), b"back");
        assert_eq!(socket.recv().unwrap(), None);
        fleet.end(socket);
    }
}

#[test]
fn also_after_its_answer() {
    let mut fleet = Fleet::default();
    let (_taken, target) = nobody(ANY);
    let at = fleet.serve(redirects_the_first(true, target));
    let mut socket = connect(at, Options::default()).unwrap();
    for request in [b"one", b"two"] {
        socket.send(request).unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), request);
    }
    fleet.end(socket);
}

#[test]
fn a_target_that_is_not_allowed_is_not_visited() {
    let mut fleet = Fleet::default();
    let (second, there) = listen(ANY, ServerOptions::default());
    let at = fleet.serve(redirects_the_first(false, there));
    let options = Options {
        allow: Allow::only(vec!["192.0.2.0/24".parse().unwrap()]),
        ..in_session()
    };
    let mut socket = connect(at, options).unwrap();
    socket.send(b"stay").unwrap();
    assert_eq!(socket.recv().unwrap().unwrap(), b"stay");
    assert_eq!(socket.not_allowed().unwrap().target, there);
    let mut second = [PollFd::new(second.tcp().as_fd(), PollFlags::POLLIN)];
    let visitors = poll(&mut second, PollTimeout::ZERO).unwrap();
    assert_eq!(visitors, 0, "it was visited");
    fleet.end(socket);
}

#[test]
fn a_server_that_dies_with_a_request_is_an_error_and_not_an_end() {
    let mut fleet = Fleet::default();
    let at = fleet.serve(|mut session| {
        session.recv().unwrap().unwrap();
    });
    let mut socket = connect(at, in_session()).unwrap();
    socket.send(b"lost").unwrap();
    let error = socket.recv().unwrap_err();
    assert!(error.to_string().contains("1 request(s)"), "{error}");
    fleet.end(socket);
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
    // A token names the client's address, which is the same at all servers of one IP version.
    for any in [ANY, ANY6] {
        let mut fleet = Fleet::default();
        let (second, there) = listen(any, guarded.clone());
        fleet.run(second, |mut session| match session.recv() {
            Ok(Some(request)) => {
                let answer = request.to_vec();
                session.send(&answer).unwrap();
            }
            Ok(None) => {}
            Err(error) => assert!(error.to_string().contains("shows no token"), "{error}"),
        });
        let (first, at) = listen(any, with_key.clone());
        fleet.run(first, move |session| session.redirect(None, there).unwrap());
        let mut socket = connect(at, in_session()).unwrap();
        socket.send(b"sent here").unwrap();
        assert_eq!(socket.recv().unwrap().unwrap(), b"sent here");
        let mut straight = connect(there, in_session()).unwrap();
        straight.send(b"came alone").unwrap();
        assert!(straight.recv().is_err());
        fleet.end((socket, straight));
    }
}
