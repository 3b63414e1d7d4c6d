//! Connections that move here from other data servers: the session of each comes by the daemons, its socket by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::locked::locked;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::state::State;
use crate::client::Ends;

/// A session whose connection does not come within this time is forgotten.
const EXPECTED: Duration = Duration::from_secs(10);

/// The sessions whose connections are expected, and the connections whose sessions are.
pub(super) struct Arrivals<S = State>(Arc<Mutex<Waiting<S>>>);

struct Waiting<S> {
    /// How many sessions have come.
    count: u64,
    sessions: HashMap<Ends, Expected<S>>,
    sockets: HashMap<Ends, oneshot::Sender<S>>,
}

struct Expected<S> {
    /// Tells it from another session of the same connection.
    number: u64,
    state: S,
    /// Says that the connection has come.
    arrived: oneshot::Sender<()>,
}

/// A connection whose session has come.
pub(super) struct Arrival(oneshot::Receiver<()>);

/// A socket that waits for its session. It waits no longer when this is dropped.
pub(super) struct Socket<S = State> {
    arrivals: Arrivals<S>,
    ends: Ends,
    session: oneshot::Receiver<S>,
}

impl<S> Clone for Arrivals<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Default for Arrivals<S> {
    fn default() -> Self {
        let waiting = Waiting {
            count: 0,
            sessions: HashMap::new(),
            sockets: HashMap::new(),
        };
        Self(Arc::new(Mutex::new(waiting)))
    }
}

impl<S: Send + 'static> Arrivals<S> {
    /// Expects the connection of this session. A later session of the same connection replaces an earlier one.
    pub fn expect(&self, ends: Ends, state: S) -> Arrival {
        let mut waiting = locked(&self.0);
        let (arrived, arrival) = oneshot::channel();
        let arrival = Arrival(arrival);
        let sent = match waiting.sockets.remove(&ends) {
            Some(socket) => socket.send(state),
            None => Err(state),
        };
        // Without a socket, or if that has ended meanwhile, the session waits.
        let Err(state) = sent else {
            // `arrival` has the receiver.
            let _ = arrived.send(());
            return arrival;
        };
        waiting.count += 1;
        let number = waiting.count;
        let expected = Expected {
            number,
            state,
            arrived,
        };
        waiting.sessions.insert(ends, expected);
        drop(waiting);
        let arrivals = self.clone();
        tokio::spawn(async move {
            sleep(EXPECTED).await;
            let mut waiting = locked(&arrivals.0);
            if waiting
                .sessions
                .get(&ends)
                .is_some_and(|one| one.number == number)
            {
                waiting.sessions.remove(&ends);
            }
        });
        arrival
    }

    /// The session of a socket that has come, or a wait for it.
    pub fn socket(&self, ends: Ends) -> Result<S, Socket<S>> {
        let mut waiting = locked(&self.0);
        if let Some(expected) = waiting.sessions.remove(&ends) {
            // The daemon may have died meanwhile, so that nobody wants to know it.
            let _ = expected.arrived.send(());
            return Ok(expected.state);
        }
        let (sender, session) = oneshot::channel();
        waiting.sockets.insert(ends, sender);
        Err(Socket {
            arrivals: self.clone(),
            ends,
            session,
        })
    }
}

impl Arrival {
    /// Returns whether the connection has come, when that is known.
    pub async fn has_come(self) -> bool {
        // An error means that it is expected no longer.
        self.0.await.is_ok()
    }
}

impl<S> Socket<S> {
    /// Waits for the session, for as long as one may be on its way.
    pub async fn session(&mut self) -> Option<S> {
        timeout(EXPECTED, &mut self.session).await.ok()?.ok()
    }
}

impl<S> Drop for Socket<S> {
    fn drop(&mut self) {
        locked(&self.arrivals.0).sockets.remove(&self.ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        Ends {
            client: "192.0.2.7:40000".parse().unwrap(),
            cluster: "192.0.2.100:443".parse().unwrap(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn session_and_socket_meet_whichever_comes_first() {
        let arrivals = Arrivals::<u8>::default();
        for state in 0..3 {
            let arrival = arrivals.expect(ends(), state);
            let socket = arrivals.socket(ends()).ok();
            assert_eq!(socket, Some(state));
            assert!(arrival.has_come().await);
            let mut socket = arrivals.socket(ends()).err().unwrap();
            let arrival = arrivals.expect(ends(), state + 10);
            let session = socket.session().await;
            assert_eq!(session, Some(state + 10));
            assert!(arrival.has_come().await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let arrivals = Arrivals::<u8>::default();
        let mut socket = arrivals.socket(ends()).err().unwrap();
        assert!(socket.session().await.is_none());
        drop(socket);
        assert!(!arrivals.expect(ends(), 1).has_come().await);
        assert!(arrivals.socket(ends()).is_err());
        // A later session of the same connection does not end with an earlier one's time.
        let first = arrivals.expect(ends(), 1);
        sleep(EXPECTED / 2).await;
        let later = arrivals.expect(ends(), 2);
        assert!(!first.has_come().await);
        sleep(EXPECTED * 3 / 4).await;
        assert_eq!(arrivals.socket(ends()).ok(), Some(2));
        assert!(later.has_come().await);
    }
}
