//! The rest of responses whose data server died, as the connection server has others send it.
//!
//! For each connection in the middle of a response, an *orphan*:
//!
//! ```text
//!  waits --Ask--> a data server --READY--> Take: the entry is its own now, the client is probed
//!                   | refuses, or is silent      | BEGUN: the connection is there. Done
//!                   v                            v nothing: asked and probed again, ever more slowly
//!                 the next one; none left: Reset
//! ```
//!
//! Every message may be lost; each is repeated until its answer comes. What the replacement says of its
//! response, a digest of its head and the length, is remembered: should it die too, the next one's must
//! be the same.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use baton_wire::{HeadDigest, Outcome};

use crate::Moment;

/// So many are under way at once; the others wait.
pub const AT_ONCE: usize = 256;

/// An order is sent again after this long without an answer,
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// and so often; then somebody else is asked. Where one data server died the others have more to do, and are slow;
/// of one that dies as well is heard before ([`Resumes::handle_death`]).
const ASK_TIMES: u32 = 25;
/// The client is probed again after this long, then after twice as long, and so on,
const PROBE_AGAIN: Duration = Duration::from_millis(100);
/// and so often; then it is away, and finds its response waiting when it speaks.
const PROBE_TIMES: u32 = 8;
/// A request that nobody has answered is the client's to send again; after this long it does not.
const LAST_CALL: Duration = Duration::from_secs(6);
/// So many are remembered after they have been resumed.
const REMEMBERED: usize = 1 << 14;

/// What is known of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What tells its head from others.
    pub digest: Option<HeadDigest>,
    /// Head and body, bytes.
    pub length: Option<u64>,
}

/// What is to be done. `K` names a connection, `S` a data server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<K, S> {
    /// Order the response from this data server.
    Ask {
        /// Whose.
        key: K,
        /// From whom.
        server: S,
        /// The order's number.
        number: u64,
        /// What is known of the response that the client has begun to get.
        known: Known,
    },
    /// It is this one's from now on; then probe the client.
    Take {
        /// Which.
        key: K,
        /// Whose it was.
        from: S,
        /// Whose it is.
        server: S,
    },
    /// Probe the client.
    Probe {
        /// Whose.
        key: K,
    },
    /// The connection has come to its data server.
    Begun {
        /// Which.
        key: K,
        /// Whose it is.
        server: S,
    },
    /// Look a last time for requests that this dead data server had not answered, and that did not come
    /// again: tell their clients.
    CallLast {
        /// Whose they were.
        server: S,
    },
    /// The client has all of its response: leave it alone.
    Leave {
        /// Which.
        key: K,
    },
    /// Nobody has the rest: tell the client.
    Reset {
        /// Which.
        key: K,
        /// Whose it was.
        from: S,
        /// What the last one that was asked said; `None`: there was nobody to ask, or no answer.
        why: Option<Outcome>,
    },
}

/// All that is being resumed, and what is known of what was.
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
    /// Who can still be asked, the next one last.
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
    /// Nothing yet; `first` is the number of the first order, best one that no earlier life has come to.
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

    /// Whether this node is in front. Elsewhere entries are of an earlier time and the connections may be
    /// others' by now: all that is under way is dropped, and nothing begins.
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

    /// Whether this node is in front, as far as was told.
    pub fn is_front(&self) -> bool {
        self.is_front
    }

    /// The data server `from` of this connection is dead; `servers` could answer alike, the best first.
    /// What was under way for it begins again.
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

    /// What an order has come to, and what is known of the response there.
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
            // The order again, because a probe was: it is as before.
            (State::Taken { .. }, Outcome::Ready) | (State::Waiting, _) => {}
            (_, Outcome::Complete) => {
                self.actions.push_back(Action::Leave { key });
                self.remove(key);
            }
            (State::Taken { server, .. }, refusal) => {
                // It had it, and has lost it: its daemon was restarted.
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

    /// A data server died: what was asked of it is asked of others. What is its own already comes by
    /// [`Resumes::handle_orphan`].
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

    /// A data server lives again: its requests are its own.
    pub fn handle_life(&mut self, server: S) {
        self.last_calls.retain(|(_, other)| *other != server);
    }

    /// The connection is gone, or asks for something else by now.
    pub fn forget(&mut self, now: Moment, key: K) {
        self.remove(key);
        self.begin(now);
    }

    /// What is to be done, to be called until there is nothing: after every other call, and at
    /// [`Resumes::next_timeout`].
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

    /// When to call [`Resumes::poll`] again, if nothing happens before.
    pub fn next_timeout(&self) -> Option<Moment> {
        let calls = self.last_calls.iter().map(|(at, _)| *at);
        (self.cases.values().filter_map(Case::timeout))
            .chain(calls)
            .min()
    }

    /// How many connections are being resumed, or wait to be.
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

    /// Starts what waits, as far as there is room.
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
