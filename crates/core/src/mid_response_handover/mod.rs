//! Moves responses that are under way away from a data server that drains. The connection server does this.
//!
//! ```text
//!  waits --Ask--> its owner --READY--> Ask --> another data server --READY--> Yield --BEGUN--> done
//!            |                           | refuses, or is silent: the next one  | its owner has let go, and
//!            v                           v none left                            v nobody has it: Orphan
//!          Stays                       Stays       Recall --it is kept--> Back, Stays
//! ```
//!
//! All that can go wrong with the response is found out before its owner is told to let go: what the owner's own
//! server answers now must be what it answered then, and another server must answer the same. From then on
//! packets go to whichever of the two has the connection, and the owner alone decides the moment of the move.
//! Every message may be lost; each is repeated until its answer comes. If the owner dies, or has let go and the
//! connection has not arrived anywhere, the response is resumed like any other.

mod case;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use baton_wire::{Outcome, YieldAnswer};

use crate::Moment;
use crate::resume::Known;
use case::{Case, State, YIELD_AGAIN};

/// At most this many responses are moved at once; the others wait. Each move asks two servers for the response.
pub const AT_ONCE: usize = 128;

/// An order without an answer is sent again after this long.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// An order is sent at most this often; then another data server is asked. A server may take a while to answer,
/// and its daemon waits for it.
const ASK_TIMES: u32 = 12;
/// The owner is told to let go at most this often. After that the client is away, or much of what was sent is
/// lost, and the owner is told to keep the connection.
const YIELD_TIMES: u32 = 80;
/// A connection that its owner has let go has arrived at the next data server after this many questions, or it
/// is lost.
const GONE_TIMES: u32 = 10;
/// The owner is told to keep a connection without a limit on repetitions; the pauses double up to this one.
const RECALL_SLOWEST: Duration = Duration::from_secs(1);
/// A response that stays for a reason that may pass is looked at again after this long.
const REST: Duration = Duration::from_secs(2);
/// At most this many responses that stay are remembered.
const REMEMBERED: usize = 1 << 14;

/// What the owner of [`Handovers`] has to do. `K` names a response, `S` a data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<K, S> {
    /// Order the response from this data server.
    Ask {
        /// The response that is ordered.
        key: K,
        /// The data server that is asked.
        server: S,
        /// The order's number.
        number: u64,
        /// What the response must be.
        known: Known,
    },
    /// Cancel an order.
    Cancel {
        /// The response that is ordered.
        key: K,
        /// The data server that has the response ready, or may have.
        server: S,
        /// The order's number.
        order: u64,
        /// The number of this cancellation, from the same sequence as the orders'.
        number: u64,
    },
    /// Prepare the connection's entry, so that it is `server`'s as soon as its owner lets go. If that is not
    /// possible, call [`Handovers::forget`].
    Begin {
        /// The response that moves, or was to move.
        key: K,
        /// The owner of the connection.
        from: S,
        /// The data server that is to get the connection.
        server: S,
    },
    /// Tell the owner to let the connection go, or to keep it.
    Yield {
        /// The response that moves, or was to move.
        key: K,
        /// The owner of the connection.
        from: S,
        /// The data server that is to get the connection; `None`: the owner keeps it.
        server: Option<S>,
    },
    /// The owner has kept the connection, which is where it was.
    Back {
        /// The response that moves, or was to move.
        key: K,
        /// The owner of the connection.
        from: S,
        /// The data server that was to get the connection.
        server: S,
    },
    /// The connection has arrived at its next data server.
    Begun {
        /// The response that moves, or was to move.
        key: K,
        /// The last owner of the connection.
        from: S,
        /// The owner of the connection.
        server: S,
    },
    /// The last owner no longer has the connection and the next one does not have it yet: resume the response.
    Orphan {
        /// The response that moves, or was to move.
        key: K,
        /// The last owner of the connection.
        from: S,
        /// The data server that has the rest of the response, if it lives.
        server: S,
    },
    /// The response stays where it is.
    Stays {
        /// The response that moves, or was to move.
        key: K,
        /// What the last data server that was asked said; `None`: there was nobody to ask, or no answer.
        why: Option<Outcome>,
    },
}

/// All responses that are being moved, and those that stay where they are.
#[derive(Debug)]
pub struct Handovers<K, S> {
    next: u64,
    waiting: VecDeque<K>,
    cases: BTreeMap<K, Case<S>>,
    numbers: BTreeMap<u64, K>,
    cancels: BTreeMap<u64, Cancel<K, S>>,
    stays: BTreeMap<K, Option<Moment>>,
    actions: VecDeque<Action<K, S>>,
}

#[derive(Clone, Copy, Debug)]
struct Cancel<K, S> {
    key: K,
    server: S,
    order: u64,
    again: Moment,
    times: u32,
}

impl<K: Copy + Ord, S: Copy + Eq> Handovers<K, S> {
    /// Makes the state of a node that moves nothing yet. `first` is the number of the first order; best is one that no earlier run of the
    /// daemon has reached.
    pub fn new(first: u64) -> Self {
        Self {
            next: first,
            waiting: VecDeque::new(),
            cases: BTreeMap::new(),
            numbers: BTreeMap::new(),
            cancels: BTreeMap::new(),
            stays: BTreeMap::new(),
            actions: VecDeque::new(),
        }
    }

    /// Whether [`Handovers::handle_busy`] would take this response: it is not under way yet, and not known to stay.
    pub fn would_take(&self, now: Moment, key: &K) -> bool {
        let stays = match self.stays.get(key) {
            None => false,
            Some(until) => until.is_none_or(|until| now < until),
        };
        !stays && !self.cases.contains_key(key)
    }

    /// Takes a response that is under way at `from`, which drains. `servers` are those that could give the same
    /// answer, the best first. `known` is how the response began when its client asked: the content may have
    /// changed since, on all servers.
    pub fn handle_busy(&mut self, now: Moment, key: K, from: S, mut servers: Vec<S>, known: Known) {
        if !self.would_take(now, &key) {
            return;
        }
        servers.reverse();
        self.cases.insert(key, Case::new(from, servers, known));
        self.waiting.push_back(key);
        self.begin(now);
    }

    /// Takes a response that is under way at a data server which drains, if it is not known how it began: it
    /// stays there, and is looked at again after a while.
    pub fn handle_unknown(&mut self, now: Moment, key: K) {
        if self.would_take(now, &key) {
            self.remember_stay(key, Some(now + REST));
        }
    }

    /// Takes the outcome of an order, and what is known of the response at the data server that was asked.
    pub fn handle_ready(&mut self, now: Moment, number: u64, outcome: Outcome, found: Known) {
        self.cancels.remove(&number);
        let Some(&key) = self.numbers.get(&number) else {
            return;
        };
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        match (case.state, outcome) {
            (State::Looking { .. }, Outcome::Ready) => {
                case.known = found;
                let from = case.from;
                self.cancel(now, key, from, number);
                self.ask_next(now, key);
            }
            (State::Asked { server, .. }, Outcome::Ready) => {
                case.set_yielding(now, server);
                let from = case.from;
                self.actions.push_back(Action::Begin { key, from, server });
                self.tell(key, from, Some(server));
            }
            (
                State::Yielding { server, .. }
                | State::Recalled { server, .. }
                | State::Gone { server, .. },
                Outcome::Begun,
            ) => {
                let from = case.from;
                self.actions.push_back(Action::Begun { key, from, server });
                self.remove(key);
            }
            (State::Looking { .. }, refusal) => self.stay(now, key, Some(refusal)),
            (State::Asked { .. }, refusal) => {
                case.why = Some(refusal);
                self.ask_next(now, key);
            }
            (State::Yielding { .. }, Outcome::Ready) => {}
            (State::Yielding { server, .. }, refusal) => {
                // The server had the response ready and has lost it: its daemon was restarted.
                case.why = Some(refusal);
                self.recall(now, key, server);
            }
            _ => {}
        }
        self.begin(now);
    }

    /// Takes the owner's answer about a connection that it was told to let go, or to keep.
    pub fn handle_answer(&mut self, now: Moment, key: K, answer: YieldAnswer) {
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        let from = case.from;
        match (case.state, answer) {
            (
                State::Yielding { server, .. } | State::Recalled { server, .. },
                YieldAnswer::Gone,
            ) => case.set_gone(now, server),
            // The owner may still let go when the order reaches it once more, so the response stays only when
            // the owner says that it has kept it.
            (State::Yielding { server, .. }, YieldAnswer::Refused) => {
                self.recall(now, key, server);
            }
            (State::Recalled { server, .. }, YieldAnswer::Kept) => {
                let (why, number) = (case.why, case.number);
                self.actions.push_back(Action::Back { key, from, server });
                self.cancel(now, key, server, number);
                self.stay(now, key, why);
            }
            _ => {}
        }
        self.begin(now);
    }

    /// A data server died. If it had not been told to let a response of its go, that is an orphan like any
    /// other, and is forgotten here.
    pub fn handle_death(&mut self, now: Moment, dead: S) {
        self.cancels.retain(|_, cancel| cancel.server != dead);
        let keys: Vec<K> = self.cases.keys().copied().collect();
        for key in keys {
            let Some(case) = self.cases.get_mut(&key) else {
                continue;
            };
            case.servers.retain(|other| *other != dead);
            let from = case.from;
            match case.state {
                State::Yielding { server, .. } | State::Recalled { server, .. } if from == dead => {
                    self.orphan(key, from, server);
                }
                State::Waiting | State::Looking { .. } | State::Asked { .. } if from == dead => {
                    self.remove(key);
                }
                State::Asked { server, .. } if server == dead => self.ask_next(now, key),
                State::Yielding { server, .. } if server == dead => self.recall(now, key, server),
                State::Gone { server, .. } if server == dead => self.orphan(key, from, server),
                _ => {}
            }
        }
        self.begin(now);
    }

    /// This data server no longer drains: what it still has stays there.
    pub fn handle_undo(&mut self, now: Moment, from: S) {
        self.stays.clear();
        let concerned: Vec<(K, State<S>)> = (self.cases.iter())
            .filter(|(_, case)| case.from == from)
            .map(|(key, case)| (*key, case.state))
            .collect();
        for (key, state) in concerned {
            match state {
                State::Yielding { server, .. } => self.recall(now, key, server),
                State::Recalled { .. } | State::Gone { .. } => {}
                State::Waiting | State::Looking { .. } | State::Asked { .. } => {
                    self.forget(now, key);
                }
            }
        }
        self.begin(now);
    }

    /// Forgets a connection that is gone, that asks for something else by now, or that cannot move. What was
    /// ordered for it is cancelled.
    pub fn forget(&mut self, now: Moment, key: K) {
        if let Some(case) = self.remove(key)
            && let Some(server) = case.server()
        {
            self.cancel(now, key, server, case.number);
        }
        self.begin(now);
    }

    /// Whether a move has prepared this connection's entry, so that nobody else may change it.
    pub fn holds(&self, key: &K) -> bool {
        (self.cases.get(key)).is_some_and(|case| case.has_begun())
    }

    /// The next thing to do. To be called until it returns `None`: after every other call, and now and
    /// then, because some things are due at a time.
    pub fn poll(&mut self, now: Moment) -> Option<Action<K, S>> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let due: Vec<K> = (self.cases.iter())
            .filter(|(_, case)| case.timeout().is_some_and(|timeout| timeout <= now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            self.repeat(now, key);
        }
        self.repeat_cancels(now);
        self.begin(now);
        self.actions.pop_front()
    }

    /// How many responses are being moved or wait to be moved, and how many cancellations are not answered yet.
    pub fn open(&self) -> usize {
        self.cases.len() + self.cancels.len()
    }

    fn repeat(&mut self, now: Moment, key: K) {
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        let (from, number, known) = (case.from, case.number, case.known);
        let ask = |server| Action::Ask {
            key,
            server,
            number,
            known,
        };
        match &mut case.state {
            State::Waiting => {}
            State::Looking { times, .. } if *times >= ASK_TIMES => self.stay(now, key, None),
            State::Looking { again, times } => {
                (*times, *again) = (*times + 1, now + ASK_AGAIN);
                self.actions.push_back(ask(from));
            }
            State::Asked { times, .. } if *times >= ASK_TIMES => self.ask_next(now, key),
            State::Asked {
                server,
                again,
                times,
            } => {
                (*times, *again) = (*times + 1, now + ASK_AGAIN);
                self.actions.push_back(ask(*server));
            }
            State::Yielding { server, times, .. } if *times >= YIELD_TIMES => {
                let server = *server;
                self.recall(now, key, server);
            }
            State::Yielding {
                server,
                again,
                times,
            } => {
                (*times, *again) = (*times + 1, now + YIELD_AGAIN);
                let server = *server;
                // BEGUN may have been lost; asking the server again has it repeated.
                if *times > 2 {
                    self.actions.push_back(ask(server));
                }
                self.tell(key, from, Some(server));
            }
            State::Recalled {
                server,
                again,
                pause,
            } => {
                *pause = (*pause * 2).min(RECALL_SLOWEST);
                *again = now + *pause;
                self.actions.push_back(ask(*server));
                self.tell(key, from, None);
            }
            State::Gone { server, times, .. } if *times >= GONE_TIMES => {
                let server = *server;
                self.orphan(key, from, server);
            }
            State::Gone {
                server,
                again,
                times,
            } => {
                (*times, *again) = (*times + 1, now + YIELD_AGAIN);
                self.actions.push_back(ask(*server));
            }
        }
    }

    fn repeat_cancels(&mut self, now: Moment) {
        self.cancels
            .retain(|_, one| one.again > now || one.times < ASK_TIMES);
        for (number, one) in &mut self.cancels {
            if one.again <= now {
                (one.times, one.again) = (one.times + 1, now + ASK_AGAIN);
                self.actions.push_back(Action::Cancel {
                    key: one.key,
                    server: one.server,
                    order: one.order,
                    number: *number,
                });
            }
        }
    }

    /// Starts waiting moves as far as there is room. Each begins by asking the owner's own server what the
    /// response is.
    fn begin(&mut self, now: Moment) {
        while self.numbers.len() < AT_ONCE {
            let Some(key) = self.waiting.pop_front() else {
                return;
            };
            let Some(case) = self.cases.get_mut(&key) else {
                continue;
            };
            if case.state != State::Waiting {
                continue;
            }
            case.state = State::Looking {
                again: now + ASK_AGAIN,
                times: 1,
            };
            let (server, known) = (case.from, case.known);
            self.order(key, server, known);
        }
    }

    fn ask_next(&mut self, now: Moment, key: K) {
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        let Some(server) = case.servers.pop() else {
            let why = case.why;
            self.stay(now, key, why);
            return;
        };
        case.state = State::Asked {
            server,
            again: now + ASK_AGAIN,
            times: 1,
        };
        let known = case.known;
        self.order(key, server, known);
    }

    fn order(&mut self, key: K, server: S, known: Known) {
        let number = self.next;
        self.next += 1;
        if let Some(case) = self.cases.get_mut(&key) {
            self.numbers.remove(&case.number);
            case.number = number;
        }
        self.numbers.insert(number, key);
        self.actions.push_back(Action::Ask {
            key,
            server,
            number,
            known,
        });
    }

    fn tell(&mut self, key: K, from: S, server: Option<S>) {
        self.actions.push_back(Action::Yield { key, from, server });
    }

    fn recall(&mut self, now: Moment, key: K, server: S) {
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        case.state = State::Recalled {
            server,
            again: now + YIELD_AGAIN,
            pause: YIELD_AGAIN,
        };
        let from = case.from;
        self.tell(key, from, None);
    }

    fn orphan(&mut self, key: K, from: S, server: S) {
        self.remove(key);
        self.actions.push_back(Action::Orphan { key, from, server });
    }

    /// Leaves a response where it is: for good if the response itself is the reason, otherwise for [`REST`].
    fn stay(&mut self, now: Moment, key: K, why: Option<Outcome>) {
        let passes = !matches!(
            why,
            Some(
                Outcome::Complete
                    | Outcome::Status
                    | Outcome::NoLength
                    | Outcome::Length
                    | Outcome::Differs
            )
        );
        // A server may still execute an order that it has not answered, so the order is cancelled.
        if let Some(case) = self.remove(key)
            && why.is_none()
            && !case.has_begun()
            && let Some(server) = case.server()
        {
            self.cancel(now, key, server, case.number);
        }
        self.remember_stay(key, passes.then(|| now + REST));
        self.actions.push_back(Action::Stays { key, why });
    }

    /// Remembers that a response stays: it is not looked at before `until`; with `None`, never again.
    fn remember_stay(&mut self, key: K, until: Option<Moment>) {
        if self.stays.len() >= REMEMBERED {
            self.stays.clear();
        }
        self.stays.insert(key, until);
    }

    /// Cancels an order. A response that is ready and never used would hold a connection of its server.
    fn cancel(&mut self, now: Moment, key: K, server: S, order: u64) {
        let number = self.next;
        self.next += 1;
        self.cancels.insert(
            number,
            Cancel {
                key,
                server,
                order,
                again: now,
                times: 0,
            },
        );
    }

    fn remove(&mut self, key: K) -> Option<Case<S>> {
        let case = self.cases.remove(&key)?;
        self.numbers.remove(&case.number);
        Some(case)
    }
}
