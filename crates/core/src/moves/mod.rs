//! Responses under way that leave a data server which drains, as the connection server sees to it.
//!
//! ```text
//!  waits --Ask--> its owner --READY--> Ask --> another data server --READY--> Yield --BEGUN--> done
//!            |                           | refuses, or is silent: the next one  | its owner has let go, and
//!            v                           v none left                            v nobody has it: Orphan
//!          Stays                       Stays       Recall --it is kept--> Back, Stays
//! ```
//!
//! All that can go wrong with the response is found out before its owner is told to let go: what the owner's own
//! server answers now must be what it answered then, and another one's the same. From then on whoever of the two
//! has the connection gets its packets, and the owner alone decides the moment. Every message may be lost; each is
//! repeated until its answer comes. Where the owner dies, or has let go and nothing came of that, the response is
//! resumed as any other.

mod case;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use baton_wire::{Outcome, YieldAnswer};

use crate::Moment;
use crate::resume::Known;
use case::{Case, State};

/// So many are under way at once; the others wait. Each asks two servers for its response.
pub const AT_ONCE: usize = 128;

/// An order is sent again after this long without an answer,
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// and so often; then somebody else is asked. A server may take a while, and its daemon waits for it.
const ASK_TIMES: u32 = 12;
/// The owner is told again after this long: a response that pauses goes only then,
const YIELD_SOON: Duration = Duration::from_millis(25);
/// and then after this long: shorter than for how long its word counts there,
const YIELD_AGAIN: Duration = Duration::from_millis(100);
/// and so often: then its client is away, or much of what was sent is lost.
const YIELD_TIMES: u32 = 80;
/// What the owner has let go is there after this many questions, or it is lost.
const GONE_TIMES: u32 = 10;
/// It is asked to keep it as often as may be, ever more slowly.
const RECALL_SLOWEST: Duration = Duration::from_secs(1);
/// What stays for a reason that may pass is looked at again after this long.
const REST: Duration = Duration::from_secs(2);
/// So many that stay are remembered.
const REMEMBERED: usize = 1 << 14;

/// What is to be done. `K` names a response, `S` a data server.
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
        /// What it must be.
        known: Known,
    },
    /// Take the order back.
    Cancel {
        /// Whose.
        key: K,
        /// Who has it ready, or may have.
        server: S,
        /// The order's number.
        order: u64,
        /// The number of this, as of any order.
        number: u64,
    },
    /// The entry is this one's as soon as its owner lets go. [`Moves::forget`] it if that cannot be.
    Begin {
        /// Which.
        key: K,
        /// Whose it is.
        from: S,
        /// Whose it is to be.
        server: S,
    },
    /// Tell its owner to let go, or that it is to stay.
    Yield {
        /// Which.
        key: K,
        /// Whose it is.
        from: S,
        /// Who is to have it; `None`: it stays.
        server: Option<S>,
    },
    /// It is where it was.
    Back {
        /// Which.
        key: K,
        /// Whose it is.
        from: S,
        /// Whose it was to be.
        server: S,
    },
    /// The connection has come to its next data server.
    Begun {
        /// Which.
        key: K,
        /// Whose it was.
        from: S,
        /// Whose it is.
        server: S,
    },
    /// Its last owner has not got it any more, and the next one not yet: resume it.
    Orphan {
        /// Which.
        key: K,
        /// Whose it was.
        from: S,
        /// Who has the rest, if it lives.
        server: S,
    },
    /// It stays.
    Stays {
        /// Which.
        key: K,
        /// What the last one that was asked said; `None`: there was nobody to ask, or no answer.
        why: Option<Outcome>,
    },
}

/// All that is being moved, and what stays where it is.
#[derive(Debug)]
pub struct Moves<K, S> {
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

impl<K: Copy + Ord, S: Copy + Eq> Moves<K, S> {
    /// Nothing yet; `first` is the number of the first order, best one that no earlier life has come to.
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

    /// Whether it would be taken: it is not under way, nor known to stay.
    pub fn would_take(&self, now: Moment, key: &K) -> bool {
        let stays = match self.stays.get(key) {
            None => false,
            Some(until) => until.is_none_or(|until| now < until),
        };
        !stays && !self.cases.contains_key(key)
    }

    /// A response that is under way at `from`, which drains; `servers` could answer alike, the best first. `known` is
    /// how it began when its client asked: the content may be another one by now, on all servers.
    pub fn handle_busy(&mut self, now: Moment, key: K, from: S, mut servers: Vec<S>, known: Known) {
        if !self.would_take(now, &key) {
            return;
        }
        servers.reverse();
        self.cases.insert(key, Case::new(from, servers, known));
        self.waiting.push_back(key);
        self.begin(now);
    }

    /// A response that is under way at a data server which drains, and how it began is not known: it stays there, and
    /// is looked at again after a while.
    pub fn handle_unknown(&mut self, now: Moment, key: K) {
        if self.would_take(now, &key) {
            self.remember_stay(key, Some(now + REST));
        }
    }

    /// What an order has come to, and what is known of the response there.
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
                // It had it, and has lost it: its daemon was restarted.
                case.why = Some(refusal);
                self.recall(now, key, server);
            }
            _ => {}
        }
        self.begin(now);
    }

    /// What the owner says of a connection that it was to let go, or to keep.
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
            // The next time it is told it may find that it can: not before it says so does it stay.
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

    /// A data server died. What it had and had not been told to let go is an orphan like any other, and no
    /// more of this.
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

    /// This data server does not drain any more: what it has still, stays.
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

    /// The connection is gone, asks for something else by now, or cannot go.
    pub fn forget(&mut self, now: Moment, key: K) {
        if let Some(case) = self.remove(key)
            && let Some(server) = case.server()
        {
            self.cancel(now, key, server, case.number);
        }
        self.begin(now);
    }

    /// Whether this one's entry is as a move has it, so that nobody else may change it.
    pub fn holds(&self, key: &K) -> bool {
        (self.cases.get(key)).is_some_and(|case| case.has_begun())
    }

    /// What is to be done, to be called until there is nothing: after every other call, and at
    /// [`Moves::next_timeout`].
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

    /// When to call [`Moves::poll`] again, if nothing happens before.
    pub fn next_timeout(&self) -> Option<Moment> {
        let cases = self.cases.values().filter_map(Case::timeout);
        cases
            .chain(self.cancels.values().map(|one| one.again))
            .min()
    }

    /// How many responses are being moved, or wait to be.
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
                // BEGUN may be lost.
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

    /// Starts what waits, as far as there is room: by asking its own server what the response is.
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

    /// For good if the response itself is the reason.
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
        // An order without an answer may come to something yet.
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

    /// It is not looked at before `until`, or never again.
    fn remember_stay(&mut self, key: K, until: Option<Moment>) {
        if self.stays.len() >= REMEMBERED {
            self.stays.clear();
        }
        self.stays.insert(key, until);
    }

    /// A response that waits for nobody would hold a connection of its server.
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
