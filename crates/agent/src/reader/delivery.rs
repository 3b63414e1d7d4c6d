//! Sends in what was read of a connection, until the connection's next socket has it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_abi::TcbKey;
use tokio::time::{Instant, sleep};

use super::keeping::{Given, Keeping, State};
use super::program::Program;
use super::store::{Left, Store};

/// The first pause between two tries.
pub(super) const SOON: Duration = Duration::from_millis(1);
/// The longest pause between two tries, until the connection's next socket has all data.
const LATEST: Duration = Duration::from_secs(1);

/// This many packets are enough for the connection server to find out that nobody has a connection: it asks all data
/// servers twice, and lets some seconds pass.
const PROBES: usize = 8;

/// The pause after these packets. As many follow with this pause, in case that a data server could not be asked, or that
/// another connection server has taken over meanwhile.
const PROBES_AGAIN: Duration = Duration::from_secs(10);

/// What has become of a connection.
pub(super) enum Outcome {
    Given,
    Answered,
}

/// Sends in what an earlier process kept of a connection.
pub(super) async fn see_left(left: Left, program: Arc<dyn Program>, store: Arc<Store>) {
    let Left { flow, begin, given } = left;
    // The program's maps may be new, and not know this connection.
    let known = program.kept(&flow).and_then(|kept| match kept {
        Some(_) => Ok(()),
        None => program.keep(&flow, begin),
    });
    let seen = match known {
        Ok(()) => see_received(&*program, &flow, &given).await,
        Err(error) => Err(error),
    };
    store.remove(&flow);
    if let Ok(State::Gone) = seen {
        make_it_speak(&*program, &given).await;
    } else if let Err(error) = seen.and_then(given_up) {
        tracing::debug!(%error, "a request that an earlier process had read did not reach its server");
    }
}

/// Probes the client of a connection that was found nowhere. Either the connection has ended, or it was lost with an
/// earlier process. In the second case its client waits, because all that it sent was acknowledged. Only the client
/// knows which case it is: if it still has the connection, the connection server resets it, like every connection that
/// nobody has.
async fn make_it_speak(program: &dyn Program, given: &Given) {
    for pause in [[LATEST; PROBES], [PROBES_AGAIN; PROBES]].concat() {
        each(given.last(), |frame| program.probe(frame));
        sleep(pause).await;
    }
}

/// Sends in what is missing until the connection's socket, wherever that is by now, has all data. The client does not
/// send again what was acknowledged to it.
pub(super) async fn see_received(
    program: &dyn Program,
    flow: &TcbKey,
    given: &Given,
) -> io::Result<State> {
    let mut keeping = Keeping::new(Instant::now(), given.end);
    let mut pause = SOON;
    // In most cases that socket has all data already, and the last frame is enough to show it.
    send(program, given.last());
    loop {
        sleep(pause).await;
        let Some(kept) = program.kept(flow)? else {
            return Err(io::Error::other(
                "there is no room to note what its server has received",
            ));
        };
        match keeping.look(Instant::now(), kept) {
            State::Missing => send(program, given.missing(kept.received)),
            state => return Ok(state),
        }
        pause = (pause * 2).min(LATEST);
    }
}

/// The outcome of a connection that was given away. A connection that is found nowhere was answered and has ended
/// before the agent noticed, or what is kept here of it is kept once more with a later request. If instead it was lost
/// with its data server, the connection server takes care of its client, as of all clients of a dead data server.
pub(super) fn given_up(state: State) -> io::Result<Outcome> {
    match state {
        State::Done | State::Gone => Ok(Outcome::Given),
        State::Missing | State::Late => Err(io::Error::other(
            "its server has not received all of the request",
        )),
    }
}

pub(super) fn send<'a>(program: &dyn Program, frames: impl Iterator<Item = &'a [u8]>) {
    each(frames, |frame| program.send(frame));
}

/// Does this with each frame. A frame that the kernel refuses is lost, as it may be on a wire: all that is sent here is
/// sent again.
fn each<'a>(frames: impl Iterator<Item = &'a [u8]>, does: impl Fn(&[u8]) -> io::Result<()>) {
    for frame in frames {
        if let Err(error) = does(frame) {
            tracing::debug!(%error, "a frame of a request that was read could not be sent");
        }
    }
}
