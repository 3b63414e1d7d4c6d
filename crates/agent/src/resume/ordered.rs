//! Orders for the rest of a response, and the responses that were ordered: each waits for its connection, or its
//! connection has come.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baton_wire::HeadDigest;
use tokio::net::TcpStream;

use super::head::Unfit;
use crate::client::Ends;

/// While this many responses are here, no further order is accepted.
const WAITING: usize = 4096;

/// An order for the rest of a response.
#[derive(Clone, Debug)]
pub struct Order {
    /// The connection whose response is ordered.
    pub ends: Ends,
    /// A number that tells this order from others about the same connection.
    pub number: u64,
    /// The client's request, as the client sent it. If it is empty, the order whose number stands in `digest` is taken
    /// back, unless its connection has come.
    pub request: Vec<u8>,
    /// Sequence number of the response's first byte.
    pub start: u32,
    /// The client has at least all bytes before this sequence number.
    pub acknowledged: u32,
    /// Digest of the response's head, as far as that is known.
    pub digest: Option<HeadDigest>,
    /// Length of the whole response, bytes, if it is known.
    pub length: Option<u64>,
}

/// The state of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The response is here, and waits for its connection.
    Ready(Found),
    /// The response is here, and its connection has come.
    Begun(Found),
    /// The client has the whole response already.
    Complete(Found),
    /// The response is not the same, or nobody can tell.
    Unfit(Unfit),
    /// The local server does not answer.
    Unreachable,
    /// Too many responses are here already.
    Full,
}

/// The response that the local server gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Digest that tells the response's head from others.
    pub digest: HeadDigest,
    /// Length of head and body, bytes.
    pub length: u64,
}

/// All ordered responses, by connection. Each connection has at most one.
#[derive(Debug, Default)]
pub(super) struct Responses(Mutex<HashMap<Ends, Ordered>>);

/// A response that was ordered, and its state.
#[derive(Debug)]
struct Ordered {
    number: u64,
    start: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Asking,
    Waiting(Found, Box<Opened>),
    Begun(Found),
    TakenBack,
}

/// The local server's answer, and the part of it that was read already.
#[derive(Debug)]
pub(super) struct Opened {
    pub server: TcpStream,
    pub read: Vec<u8>,
}

/// A response whose connection has come.
#[derive(Debug)]
pub(super) struct Taken {
    /// Number of the response's order.
    pub number: u64,
    /// Sequence number of the response's first byte.
    pub start: u32,
    pub found: Found,
    pub opened: Opened,
}

/// What is known of an order that has just come.
pub(super) enum Registered {
    New,
    Known(Option<Outcome>),
}

impl Responses {
    /// Locks the table. The lock is held for a few instructions, never across a wait, so a task that panics leaves the
    /// table whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<Ends, Ordered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn register(&self, order: &Order) -> Registered {
        let mut responses = self.lock();
        if let Some(known) = responses.get(&order.ends)
            && known.number == order.number
        {
            return Registered::Known(match known.state {
                State::Asking | State::TakenBack => None,
                State::Waiting(found, _) => Some(Outcome::Ready(found)),
                State::Begun(found) => Some(Outcome::Begun(found)),
            });
        }
        if responses.len() >= WAITING {
            return Registered::Known(Some(Outcome::Full));
        }
        let response = Ordered {
            number: order.number,
            start: order.start,
            state: State::Asking,
        };
        responses.insert(order.ends, response);
        Registered::New
    }

    /// Keeps the response for its connection, unless another order has taken its place meanwhile.
    pub fn keep(&self, order: &Order, found: Found, opened: Opened) -> Outcome {
        if u64::from(order.acknowledged.wrapping_sub(order.start)) == found.length {
            return Outcome::Complete(found);
        }
        if let Some(response) = self.lock().get_mut(&order.ends)
            && response.number == order.number
            && matches!(response.state, State::Asking)
        {
            response.state = State::Waiting(found, Box::new(opened));
        }
        Outcome::Ready(found)
    }

    pub fn forget(&self, ends: Ends, number: u64) {
        let mut responses = self.lock();
        if responses.get(&ends).is_some_and(|r| r.number == number) {
            responses.remove(&ends);
        }
    }

    /// Takes an order back, also if that order comes only now, or comes again. A response whose connection has come
    /// goes on, and so does one that was ordered since.
    pub fn take_back(&self, ends: Ends, number: u64) {
        let mut responses = self.lock();
        let is_other = (responses.get(&ends))
            .is_some_and(|one| one.number != number || matches!(one.state, State::Begun(_)));
        if !is_other {
            let ordered = Ordered {
                number,
                start: 0,
                state: State::TakenBack,
            };
            responses.insert(ends, ordered);
        }
    }

    /// Forgets a response for which no connection came.
    pub fn give_up(&self, ends: Ends, number: u64) {
        let waits = matches!(
            self.lock().get(&ends),
            Some(Ordered { number: at, state: State::Waiting(..), .. }) if *at == number
        );
        if waits {
            self.forget(ends, number);
        }
    }

    /// Takes the response that this connection has come for.
    pub fn take(&self, ends: Ends) -> Option<Taken> {
        let mut responses = self.lock();
        let response = responses.get_mut(&ends)?;
        let State::Waiting(found, _) = response.state else {
            return None;
        };
        let State::Waiting(_, opened) = std::mem::replace(&mut response.state, State::Begun(found))
        else {
            return None;
        };
        Some(Taken {
            number: response.number,
            start: response.start,
            found,
            opened: *opened,
        })
    }
}
