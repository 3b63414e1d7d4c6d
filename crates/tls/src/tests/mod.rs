//! Sessions against sessions: the client's one is the server's, mirrored, and can send whatever a test wants.

mod hostile;
mod imports;
mod offload;
mod regular;
mod ticket_keys;

use crate::direction::Direction;
use crate::record::{Content, RecordError};
use crate::session::{Received, Session};
use crate::suite::Suite;

/// A direction of fixed material.
fn direction(suite: Suite, seed: u8, sequence: u64) -> Direction {
    let material =
        (0..suite.material_length()).map(|at| seed.wrapping_mul(31).wrapping_add(at as u8));
    Direction::new(suite, material.collect::<Vec<_>>().into(), sequence).unwrap()
}

/// A server's session, and its client's.
fn pair(suite: Suite) -> (Session, Session) {
    let name = || Some("any.example".to_owned());
    let server = Session::new(
        (direction(suite, 1, 1), direction(suite, 2, 3)),
        name(),
        Some(b"h2".to_vec()),
    );
    let client = Session::new(
        (direction(suite, 2, 3), direction(suite, 1, 1)),
        name(),
        Some(b"h2".to_vec()),
    );
    (server, client)
}

/// A record with this content.
fn record(from: &mut Session, content: Content, bytes: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    from.sending.seal(content, bytes, &mut record);
    record
}

/// What came of receiving: the result, the data, and what is sent in return.
type Outcome = (Result<Received, RecordError>, Vec<u8>, Vec<u8>);

fn receive(by: &mut Session, bytes: &[u8]) -> Outcome {
    let (mut input, mut plain, mut output) = (bytes.to_vec(), Vec::new(), Vec::new());
    let result = by.receive(&mut input, &mut plain, &mut output);
    (result, plain, output)
}

fn of_version(is_tls13: bool) -> impl Iterator<Item = Suite> {
    let version = if is_tls13 {
        crate::Version::Tls13
    } else {
        crate::Version::Tls12
    };
    (Suite::ALL.iter().copied()).filter(move |suite| suite.version() == version)
}
