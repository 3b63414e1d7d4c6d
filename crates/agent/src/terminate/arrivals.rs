//! Connections that move here from other data servers: the session of each comes by the daemons, its socket by itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::locked::locked;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use super::messages::{Moving, Secret};
use crate::client::Ends;

/// A session whose connection does not come within this time is forgotten.
const EXPECTED: Duration = Duration::from_secs(10);

/// The sessions whose connections are expected, and the connections whose sessions are.
#[derive(Clone, Default)]
pub(super) struct Arrivals(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    /// How many sessions have come.
    count: u64,
    sessions: HashMap<Ends, Expected>,
    sockets: HashMap<Ends, oneshot::Sender<Secret>>,
}

struct Expected {
    /// Tells it from another session of the same connection.
    number: u64,
    state: Secret,
    /// Says that the connection has come.
    come: watch::Sender<bool>,
}

/// A socket that waits for its session. It waits no longer when this is dropped.
pub(super) struct Socket {
    arrivals: Arrivals,
    ends: Ends,
    session: oneshot::Receiver<Secret>,
}

impl Arrivals {
    /// Expects the connection of this session. A later session of the same connection replaces an earlier one.
    pub fn expect(&self, moving: Moving) {
        let mut waiting = locked(&self.0);
        let come = watch::Sender::new(false);
        let ends = moving.ends;
        let state = match waiting.sockets.remove(&ends) {
            Some(socket) => match socket.send(moving.state) {
                Ok(()) => {
                    come.send_replace(true);
                    Secret::default()
                }
                // The socket has ended meanwhile.
                Err(state) => state,
            },
            None => moving.state,
        };
        waiting.count += 1;
        let number = waiting.count;
        let expected = Expected {
            number,
            state,
            come,
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
    }

    /// Returns whether this connection has come, when that is known.
    pub async fn has_come(&self, ends: Ends) -> bool {
        let come = (locked(&self.0).sessions.get(&ends)).map(|one| one.come.subscribe());
        match come {
            // An error means that it is expected no longer.
            Some(mut come) => come.wait_for(|come| *come).await.is_ok(),
            None => false,
        }
    }

    /// The session of a socket that has come, or a wait for it.
    pub fn socket(&self, ends: Ends) -> Result<Secret, Socket> {
        let mut waiting = locked(&self.0);
        if let Some(expected) = waiting.sessions.get_mut(&ends)
            && !expected.state.is_empty()
        {
            expected.come.send_replace(true);
            return Ok(std::mem::take(&mut expected.state));
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

impl Socket {
    /// Waits for the session, for as long as one may be on its way.
    pub async fn session(&mut self) -> Option<Secret> {
        timeout(EXPECTED, &mut self.session).await.ok()?.ok()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        locked(&self.arrivals.0).sockets.remove(&self.ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moving(state: u8) -> Moving {
        Moving {
            ends: ends(),
            state: Secret::new(vec![state]),
        }
    }

    fn ends() -> Ends {
        Ends {
            client: "192.0.2.7:40000".parse().unwrap(),
            cluster: "192.0.2.100:443".parse().unwrap(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn session_and_socket_meet_whichever_comes_first() {
        let arrivals = Arrivals::default();
        assert!(!arrivals.has_come(ends()).await);
        for state in 0..3 {
            arrivals.expect(moving(state));
            let socket = arrivals.socket(ends()).ok();
            assert_eq!(socket.as_deref(), Some(&vec![state]));
            assert!(arrivals.has_come(ends()).await);
            let mut socket = arrivals.socket(ends()).err().unwrap();
            arrivals.expect(moving(state + 10));
            let session = socket.session().await;
            assert_eq!(session.as_deref(), Some(&vec![state + 10]));
            assert!(arrivals.has_come(ends()).await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let arrivals = Arrivals::default();
        let mut socket = arrivals.socket(ends()).err().unwrap();
        assert!(socket.session().await.is_none());
        drop(socket);
        arrivals.expect(moving(1));
        assert!(!arrivals.has_come(ends()).await);
        assert!(arrivals.socket(ends()).is_err());
        // A later session of the same connection does not end with an earlier one's time.
        arrivals.expect(moving(1));
        sleep(EXPECTED / 2).await;
        arrivals.expect(moving(2));
        sleep(EXPECTED * 3 / 4).await;
        assert_eq!(arrivals.socket(ends()).ok().as_deref(), Some(&vec![2]));
    }
}
