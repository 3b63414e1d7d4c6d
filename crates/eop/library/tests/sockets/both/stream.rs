//! One logical connection over many servers.

use std::net::SocketAddr;

use eop::{Options, Resend, ServerOptions};

use super::fleet::{ANY, ANY6, Fleet, listen};
use super::{Session, connect};

const REDIRECTS: u32 = 10_000;
const SERVERS: usize = 3;

/// The bytes of request and answer number `round`. No other round has the same, and two rounds in a row differ in
/// length.
fn bytes(round: u32, salt: u32) -> Vec<u8> {
    let large = if round.is_multiple_of(500) { 60_000 } else { 0 };
    let length = 4 + round * 7919 % 3000 + large;
    let mut state = round ^ salt;
    let noise = (4..length).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    round.to_be_bytes().into_iter().chain(noise).collect()
}

/// Serves each request at the server that the request's number names. After an answer, the server sends the client to
/// one that is not always that of the next request. A server to which a request does not belong redirects it without
/// an answer.
fn serve(own: usize, servers: [SocketAddr; SERVERS]) -> impl FnMut(Session) {
    move |mut session| {
        let Some(request) = session.recv().unwrap() else {
            return;
        };
        let round = u32::from_be_bytes(*request.first_chunk().unwrap());
        assert!(request == bytes(round, 0), "request {round}");
        let home = round as usize % SERVERS;
        if home != own {
            return session.redirect(None, servers[home]).unwrap();
        }
        let next = own + 1 + usize::from(round.is_multiple_of(7));
        let next = servers[next % SERVERS];
        session.redirect(Some(&bytes(round, 1)), next).unwrap();
    }
}

fn ten_thousand_redirects(any: [&str; SERVERS]) {
    let mut fleet = Fleet::default();
    let listeners = any.map(|any| listen(any, ServerOptions::default()));
    let servers = [0, 1, 2].map(|which| listeners[which].1);
    for (own, (listener, _)) in listeners.into_iter().enumerate() {
        fleet.run(listener, serve(own, servers));
    }
    let options = Options {
        resend: Resend::Session { limit: 1 << 20 },
        ..Options::default()
    };
    let mut socket = connect(servers[0], options).unwrap();
    for round in 0..REDIRECTS {
        socket.send(&bytes(round, 0)).unwrap();
        let answer = socket.recv().unwrap().unwrap();
        assert!(answer == bytes(round, 1), "answer {round}");
    }
    fleet.end(socket);
}

#[test]
fn ten_thousand_redirects_over_three_servers() {
    ten_thousand_redirects([ANY; SERVERS]);
}

#[test]
fn and_to_and_fro_between_ipv4_and_ipv6() {
    ten_thousand_redirects([ANY, ANY6, ANY6]);
}
