//! What the doors of a data server ask dispatchers on other nodes (`bpf/data_server/door/dispatcher.h`).
//!
//! ```text
//!  the program: a request waits --ring `early`--> a question --here: once for all that are alike--> QUERY
//!  the program: it comes again, and finds it <--map `answers`-- an answer, or that there is none <-- REPLY, or time is over
//! ```

use std::{
    collections::{HashMap, HashSet},
    net::Ipv4Addr,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_abi::{ASKING_PATIENCE_NS, AnswerKey, LCCP_REPLY, TcbKey};
use baton_core::{
    Moment,
    asker::{Asker, Counts, Heard},
    rules::Request,
};
use baton_dataplane::{Answers, DataServer, sys};
use baton_net::LccpSocket;
use baton_wire::{Address, Arrival, Flow, Message, NodePair, Query, Reply, decode};
use tokio::{
    runtime::Builder,
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep_until},
};
use tracing::debug;

use crate::{
    data_server::slow_path::{Docket, Opinion},
    local_node::Place,
    locked::locked,
    logging::complaints::Complaints,
    peers::heartbeat::clock_now,
};

/// Between two signs of life, of which the program misses some before it chooses by itself.
const SIGN: Duration = Duration::from_millis(25);

/// How long the program believes one.
const PATIENCE: Duration = Duration::from_nanos(ASKING_PATIENCE_NS as u64);

/// How long it is known that there is no answer: longer than what waits for it takes to come again.
const NO_ANSWER: Duration = Duration::from_millis(250);

/// So many questions may wait to be asked. Others come again.
const MOST_WAITING: usize = 1024;

/// What a request is about that waits at a door.
#[derive(Debug)]
pub struct Question {
    /// What the program remembers the answer under.
    pub key: AnswerKey,
    pub flow: TcbKey,
    /// The service's number in the maps.
    pub service: u16,
    /// The request, from its first byte on, as far as it has come.
    pub text: Vec<u8>,
}

/// What the daemon holds of it.
pub struct Asking {
    questions: mpsc::Sender<Question>,
    counts: Arc<Mutex<Counts>>,
}

impl Asking {
    /// Asks from now on, until it is dropped.
    pub fn start(server: &DataServer, place: &Place, opinion: Opinion) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot make the runtime of the thread that asks dispatchers")?;
        let lccp = {
            let _guard = runtime.enter();
            LccpSocket::open(place.address, place.config.cluster.protocol.number())?
        };
        lccp.hear_only(&[LCCP_REPLY as u8])?;
        let (questions, asked) = mpsc::channel(MOST_WAITING);
        let counts = Arc::default();
        let task = Task {
            answers: server.answers()?,
            lccp,
            opinion,
            epoch: Instant::now(),
            askers: HashMap::new(),
            open: HashSet::new(),
            counts: Arc::clone(&counts),
            complaints: Complaints::about("a dispatcher was not asked"),
        };
        // Of its own, so that nothing the daemon does delays a request.
        thread::Builder::new()
            .name("asking".to_owned())
            .spawn(move || runtime.block_on(task.serve(asked)))
            .context("cannot start the thread that asks dispatchers")?;
        Ok(Self { questions, counts })
    }

    /// Asks, if there is room: else the question comes again.
    pub fn ask(&self, question: Question) {
        if self.questions.try_send(question).is_err() {
            debug!("a question to a dispatcher is not asked yet");
        }
    }

    /// What came of all questions so far.
    pub fn counts(&self) -> Counts {
        *locked(&self.counts)
    }
}

/// What asks, and writes down what it hears.
struct Task {
    answers: Answers,
    lccp: LccpSocket,
    opinion: Opinion,
    epoch: Instant,
    /// By the dispatcher's address; each question is about all requests with its key.
    askers: HashMap<Ipv4Addr, Asker<AnswerKey>>,
    /// Keys of open questions.
    open: HashSet<AnswerKey>,
    counts: Arc<Mutex<Counts>>,
    complaints: Complaints,
}

impl Task {
    async fn serve(mut self, mut questions: mpsc::Receiver<Question>) {
        if let Err(error) = sys::run_first() {
            debug!("dispatchers are asked with the priority of the rest: {error}");
        }
        let mut sign = interval(SIGN);
        sign.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        loop {
            let late = self.next_timeout();
            let done = tokio::select! {
                question = questions.recv() => match question {
                    Some(question) => self.ask(question).await,
                    None => break,
                },
                received = self.lccp.recv_from(&mut buffer) => match received {
                    Ok(received) => {
                        let (sender, came) = (received.sender, received.came());
                        let payload = received.payload.to_vec();
                        self.hear(sender, &payload, came)
                    }
                    Err(error) => Err(error.into()),
                },
                () = sleep_until(late.unwrap_or_else(Instant::now).into()), if late.is_some() => {
                    self.give_up_late()
                }
                _ = sign.tick() => self.answers.give_sign(PATIENCE).map_err(Into::into),
            };
            self.complaints.hear(done);
            *locked(&self.counts) = self.askers.values().map(Asker::counts).sum();
        }
        self.complaints
            .hear(self.answers.withdraw().map_err(Into::into));
    }

    fn now(&self) -> Moment {
        Moment::after_epoch(self.epoch.elapsed())
    }

    fn next_timeout(&self) -> Option<Instant> {
        let timeouts = self.askers.values().filter_map(Asker::next_timeout);
        timeouts.min().map(|at| self.epoch + at.since_epoch())
    }

    /// Asks, unless somebody has asked the same just now.
    async fn ask(&mut self, question: Question) -> Result<()> {
        let key = question.key;
        if self.open.contains(&key) {
            return Ok(());
        }
        let (Some(docket), Ok(Some(request))) =
            (self.opinion.docket(), Request::read(&question.text))
        else {
            return self.note(&key, None, NO_ANSWER);
        };
        let Some(&dispatcher) = docket.dispatchers.get(&question.service) else {
            return self.note(&key, None, NO_ANSWER);
        };
        let (client, cluster) = question.flow.ends();
        let flow = Flow::new(client, cluster)?;
        let pool = self.answers.pool(key.pool)?;
        let now = self.now();
        let asker = self.askers.entry(dispatcher).or_insert_with(|| {
            // The clock is ahead of all numbers that an earlier daemon has used.
            Asker::new(clock_now().as_nanos())
        });
        match asker.ask(now, now + docket.patience, flow, key) {
            Ok(number) => {
                self.open.insert(key);
                let (host, path) = (request.host(), request.path());
                let query = Query::new(flow, number, pool.id, host.as_bytes(), path.as_bytes());
                let pair = NodePair {
                    from: self.lccp.own(),
                    to: dispatcher,
                };
                let message = docket.seal(query, pair);
                // What cannot be sent is late.
                Ok(self.lccp.send_to(&message, dispatcher).await?)
            }
            Err(key) => {
                // Nor need the program have requests wait for what is not asked.
                if let Some(rest) = asker.rest(now) {
                    self.answers.rest(question.service, rest)?;
                }
                self.note(&key, None, NO_ANSWER)
            }
        }
    }

    fn hear(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) -> Result<()> {
        let Some(docket) = self.opinion.docket() else {
            return Ok(());
        };
        let pair = NodePair {
            from: sender,
            to: self.lccp.own(),
        };
        let keys = docket.keys.with(sender);
        match decode(payload, pair, &keys, came, docket.clock_window) {
            Ok(received) => match received.message {
                Message::Reply(reply) => self.handle_reply(&docket, sender, &reply),
                _ => Ok(()),
            },
            Err(reject) => {
                debug!(%sender, "dropped an answer: {reject}");
                Ok(())
            }
        }
    }

    fn handle_reply(&mut self, docket: &Docket, sender: Ipv4Addr, reply: &Reply) -> Result<()> {
        let now = self.now();
        let answers = &self.answers;
        let can_serve = |key: &AnswerKey, server: Address| {
            let pool = answers.pool(key.pool);
            pool.is_ok_and(|pool| docket.named(server, &pool).is_some())
        };
        let Some(asker) = self.askers.get_mut(&sender) else {
            debug!(%sender, "an answer from who was not asked");
            return Ok(());
        };
        match asker.handle_reply(now, reply, can_serve) {
            Heard::Answer(key, server, lifetime) => {
                let owner = docket.servers.get(&server).copied();
                self.note(&key, owner, lifetime)
            }
            Heard::Nothing(key) => self.note(&key, None, NO_ANSWER),
            Heard::Unasked => {
                debug!(%sender, "an answer to no open question");
                Ok(())
            }
        }
    }

    /// Nothing waits any longer for an answer that is late.
    fn give_up_late(&mut self) -> Result<()> {
        let now = self.now();
        while let Some(key) = self.askers.values_mut().find_map(|asker| asker.poll(now)) {
            self.note(&key, None, NO_ANSWER)?;
        }
        Ok(())
    }

    /// What requests with this key find from now on when they come again.
    fn note(&mut self, key: &AnswerKey, owner: Option<u16>, lifetime: Duration) -> Result<()> {
        self.open.remove(key);
        Ok(self.answers.remember(key, owner, lifetime)?)
    }
}
