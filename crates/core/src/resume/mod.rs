//! How a connection server has other data servers send the rest of responses whose data server died.
//!
//! Each connection that was in the middle of a response, an *orphan*, goes through these states:
//!
//! ```text
//!  waits --Ask--> a data server --READY--> Take: the entry is its own now, the client is probed
//!                   | refuses, or is silent      | BEGUN: the connection is there. Done
//!                   v                            v nothing: asked and probed again, ever more slowly
//!                 the next one; none left: Reset
//! ```
//!
//! Every message may be lost; each is repeated until its answer comes. What the replacement says of its
//! response, a digest of its head and the length, is remembered: if the replacement dies too, the next one's
//! must be the same.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use baton_wire::{HeadDigest, Outcome};

use crate::Moment;

/// At most this many responses are being resumed at once; the others wait.
pub const AT_ONCE: usize = 256;

/// An order without an answer is sent again after this long.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// An order is sent at most this often; then another data server is asked. After the death of one data server
/// the others have more to do and are slow. If the one that is asked dies as well, that is known earlier
/// ([`Resumes::handle_death`]).
const ASK_TIMES: u32 = 25;
/// The first pause between two probes of the client; each further pause is twice as long.
const PROBE_AGAIN: Duration = Duration::from_millis(100);
/// The client is probed at most this often. After that it is away, and finds its response waiting when it sends
/// again.
const PROBE_TIMES: u32 = 8;
/// The client itself retransmits a request that nobody has answered; after this long it no longer does.
const LAST_CALL: Duration = Duration::from_secs(6);
/// At most this many responses are remembered after they have been resumed.
const REMEMBERED: usize = 1 << 14;

/// What is known of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// A digest that distinguishes the response's head from others.
    pub digest: Option<HeadDigest>,
    /// The length of the response in bytes, head and body together.
    pub length: Option<u64>,
}

/// What the owner of [`Resumes`] has to do. `K` names a connection, `S` a data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<K, S> {
    /// Order the response from this data server.
    Ask {
        /// The connection.
        key: K,
        /// The data server that is asked.
        server: S,
        /// The order's number.
        number: u64,
        /// What is known of the response that the client has begun to get.
        known: Known,
    },
    /// Make `server` the owner of the connection, then probe the client.
    Take {
        /// The connection.
        key: K,
        /// The last owner of the connection.
        from: S,
        /// The new owner of the connection.
        server: S,
    },
    /// Probe the client.
    Probe {
        /// The connection.
        key: K,
    },
    /// The connection has arrived at its data server.
    Begun {
        /// The connection.
        key: K,
        /// The new owner of the connection.
        server: S,
    },
    /// Look a last time for requests that this dead data server had not answered and that their clients did not
    /// send again, and tell these clients.
    CallLast {
        /// The dead data server.
        server: S,
    },
    /// The client has all of its response: leave it alone.
    Leave {
        /// The connection.
        key: K,
    },
    /// No data server has the rest of the response: tell the client.
    Reset {
        /// The connection.
        key: K,
        /// The last owner of the connection.
        from: S,
        /// What the last data server that was asked said; `None`: there was nobody to ask, or no answer.
        why: Option<Outcome>,
    },
}

/// All responses that are being resumed, and what is known of those that were.
#[derive(Debug)]
pub struct Resumes<K, S> {
    next: u64,
    waiting: VecDeque<K>,
    cases: BTreeMap<K, Case<S>>,
    numbers: BTreeMap<u64, K>,
    remembered: BTreeMap<u64, (K, Known)>,
    recall: BTreeMap<K, u64>,
    actions: VecDeque<Action<K, S>>,
    last_calls: Vec<(Moment, S)>,
    is_front: bool,
}

#[derive(Clone, Debug)]
struct Case<S> {
    number: u64,
    from: S,
    /// The data servers that can still be asked, the next one last.
    servers: Vec<S>,
    known: Known,
    state: State<S>,
    why: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State<S> {
    Waiting,
    Asked {
        server: S,
        again: Moment,
        times: u32,
    },
    Taken {
        server: S,
        again: Moment,
        times: u32,
    },
}

impl<K: Copy + Ord, S: Copy + Eq> Resumes<K, S> {
    /// Resumes nothing yet. `first` is the number of the first order; best is one that no earlier run of the
    /// daemon has reached.
    pub fn new(first: u64) -> Self {
        Self {
            next: first,
            waiting: VecDeque::new(),
            cases: BTreeMap::new(),
            numbers: BTreeMap::new(),
            remembered: BTreeMap::new(),
            recall: BTreeMap::new(),
            actions: VecDeque::new(),
            last_calls: Vec::new(),
            is_front: true,
        }
    }

    /// Sets whether this node is in front. A node that is not has old entries, and their connections may have
    /// other owners by now: everything under way is dropped, and nothing begins.
    pub fn set_front(&mut self, is_front: bool) {
        self.is_front = is_front;
        if !is_front {
            self.waiting.clear();
            self.cases.clear();
            self.numbers.clear();
            self.actions.clear();
            self.last_calls.clear();
        }
    }

    /// Whether this node is in front, as [`Resumes::set_front`] was told last; `true` at first.
    pub fn is_front(&self) -> bool {
        self.is_front
    }

    /// Begins to resume a connection whose data server `from` is dead. `servers` are those that could give the
    /// same answer, the best first. A resume of this connection that was under way begins again.
    pub fn handle_orphan(&mut self, now: Moment, key: K, from: S, mut servers: Vec<S>) {
        if !self.is_front {
            return;
        }
        let before = self.remove(key).map(|case| case.known);
        let known = before
            .or_else(|| {
                let number = self.recall.remove(&key)?;
                self.remembered.remove(&number).map(|(_, known)| known)
            })
            .unwrap_or_default();
        servers.reverse();
        self.cases.insert(
            key,
            Case {
                number: 0,
                from,
                servers,
                known,
                state: State::Waiting,
                why: None,
            },
        );
        self.waiting.push_back(key);
        self.begin(now);
    }

    /// Takes the outcome of an order, and what is known of the response at the data server that was asked.
    pub fn handle_ready(&mut self, now: Moment, number: u64, outcome: Outcome, found: Known) {
        let Some(&key) = self.numbers.get(&number) else {
            return;
        };
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        match (case.state, outcome) {
            (State::Asked { server, .. }, Outcome::Ready | Outcome::Begun) => {
                case.known = found;
                case.state = State::Taken {
                    server,
                    again: now + PROBE_AGAIN,
                    times: 1,
                };
                let from = case.from;
                self.actions.push_back(Action::Take { key, from, server });
            }
            (State::Taken { server, .. }, Outcome::Begun) => {
                self.actions.push_back(Action::Begun { key, server });
                self.finish(key);
            }
            // The answer to an order that was repeated together with a probe changes nothing.
            (State::Taken { .. }, Outcome::Ready) | (State::Waiting, _) => {}
            (_, Outcome::Complete) => {
                self.actions.push_back(Action::Leave { key });
                self.remove(key);
            }
            (State::Taken { server, .. }, refusal) => {
                // The server had the response ready and has lost it: its daemon was restarted.
                case.from = server;
                case.why = Some(refusal);
                self.ask_next(now, key);
            }
            (State::Asked { .. }, refusal) => {
                case.why = Some(refusal);
                self.ask_next(now, key);
            }
        }
        self.begin(now);
    }

    /// A data server died: what it was asked for, others are asked for. Connections that it already owned come
    /// by [`Resumes::handle_orphan`].
    pub fn handle_death(&mut self, now: Moment, server: S) {
        self.handle_life(server);
        if self.is_front {
            self.last_calls.push((now + LAST_CALL, server));
        }
        let mut concerned = Vec::new();
        for (key, case) in &mut self.cases {
            case.servers.retain(|other| *other != server);
            if matches!(case.state, State::Asked { server: asked, .. } if asked == server) {
                concerned.push(*key);
            }
        }
        for key in concerned {
            self.ask_next(now, key);
        }
        self.begin(now);
    }

    /// A data server lives again and answers its requests itself, so there is no last call for them.
    pub fn handle_life(&mut self, server: S) {
        self.last_calls.retain(|(_, other)| *other != server);
    }

    /// Forgets a connection that is gone, or that asks for something else by now.
    pub fn forget(&mut self, now: Moment, key: K) {
        self.remove(key);
        self.begin(now);
    }

    /// The next thing to do. To be called until it returns `None`: after every other call, and now and
    /// then, because some things are due at a time.
    pub fn poll(&mut self, now: Moment) -> Option<Action<K, S>> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        let due: Vec<K> = self
            .cases
            .iter()
            .filter(|(_, case)| case.timeout().is_some_and(|timeout| timeout <= now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            self.repeat(now, key);
        }
        let called = self.last_calls.extract_if(.., |(at, _)| *at <= now);
        (self.actions).extend(called.map(|(_, server)| Action::CallLast { server }));
        self.begin(now);
        self.actions.pop_front()
    }

    /// How many connections are being resumed or wait to be resumed.
    pub fn open(&self) -> usize {
        self.cases.len()
    }

    fn repeat(&mut self, now: Moment, key: K) {
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        match &mut case.state {
            State::Asked { times, .. } if *times >= ASK_TIMES => self.ask_next(now, key),
            State::Asked {
                server,
                again,
                times,
            } => {
                (*times, *again) = (*times + 1, now + ASK_AGAIN);
                let action = Action::Ask {
                    key,
                    server: *server,
                    number: case.number,
                    known: case.known,
                };
                self.actions.push_back(action);
            }
            State::Taken { times, .. } if *times >= PROBE_TIMES => self.finish(key),
            State::Taken {
                server,
                again,
                times,
            } => {
                *again = now + PROBE_AGAIN * (1 << *times);
                *times += 1;
                let ask = Action::Ask {
                    key,
                    server: *server,
                    number: case.number,
                    known: case.known,
                };
                self.actions.extend([ask, Action::Probe { key }]);
            }
            State::Waiting => {}
        }
    }

    /// Starts waiting resumes as far as there is room.
    fn begin(&mut self, now: Moment) {
        while self.numbers.len() < AT_ONCE {
            let Some(key) = self.waiting.pop_front() else {
                return;
            };
            if (self.cases.get(&key)).is_some_and(|case| case.state == State::Waiting) {
                self.ask_next(now, key);
            }
        }
    }

    fn ask_next(&mut self, now: Moment, key: K) {
        let number = self.next;
        let Some(case) = self.cases.get_mut(&key) else {
            return;
        };
        self.numbers.remove(&case.number);
        let Some(server) = case.servers.pop() else {
            let (from, why) = (case.from, case.why);
            self.actions.push_back(Action::Reset { key, from, why });
            self.cases.remove(&key);
            return;
        };
        self.next += 1;
        case.number = number;
        case.state = State::Asked {
            server,
            again: now + ASK_AGAIN,
            times: 1,
        };
        let known = case.known;
        self.numbers.insert(number, key);
        self.actions.push_back(Action::Ask {
            key,
            server,
            number,
            known,
        });
    }

    fn finish(&mut self, key: K) {
        let Some(case) = self.remove(key) else {
            return;
        };
        self.recall.insert(key, case.number);
        self.remembered.insert(case.number, (key, case.known));
        while self.remembered.len() > REMEMBERED {
            let Some((number, (key, _))) = self.remembered.pop_first() else {
                return;
            };
            if self.recall.get(&key) == Some(&number) {
                self.recall.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: K) -> Option<Case<S>> {
        let case = self.cases.remove(&key)?;
        self.numbers.remove(&case.number);
        Some(case)
    }
}

impl<S> Case<S> {
    fn timeout(&self) -> Option<Moment> {
        match self.state {
            State::Waiting => None,
            State::Asked { again, .. } | State::Taken { again, .. } => Some(again),
        }
    }
}
