//! Sends the questions of a data server's doors to dispatchers on other nodes, and notes the answers for the program
//! (`bpf/data_server/door/dispatcher.h`).
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
    dispatcher::{Counts, DispatcherClient, ReplyOutcome},
    rules::Request,
};
use baton_dataplane::{Answers, DataServer, sys};
use baton_net::LccpSocket;
use baton_wire::{Address, Arrival, Flow, Message, Query, Reply};
use tokio::{
    runtime::Builder,
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep_until},
};
use tracing::debug;

use crate::{
    data_server::current_rules::{RuleReader, RuleSet},
    local_node::LocalNode,
    locked::locked,
    logging::complaints::Complaints,
    peers::{heartbeat::clock_now, sealing},
};

/// The time between two signs of life to the program. The program chooses by itself only after several are missing.
const SIGN: Duration = Duration::from_millis(25);

/// How long the program takes this thread to be alive after a sign of life.
const PATIENCE: Duration = Duration::from_nanos(ASKING_PATIENCE_NS as u64);

/// How long the program remembers that there is no answer. This is longer than the waiting requests take to come again.
const NO_ANSWER: Duration = Duration::from_millis(250);

/// At most this many questions wait to be asked. Others are dropped, and come again with their requests.
const MOST_WAITING: usize = 1024;

/// A question about a request that waits at a door.
#[derive(Debug)]
pub struct Question {
    /// The key under which the program remembers the answer.
    pub key: AnswerKey,
    pub flow: TcbKey,
    /// The service's number in the maps.
    pub service: u16,
    /// The request's bytes from the first one on, as far as they have come.
    pub text: Vec<u8>,
}

/// The daemon's handle to the thread that asks dispatchers: passes questions to it and reads its counters.
pub struct DispatcherThread {
    questions: mpsc::Sender<Question>,
    counts: Arc<Mutex<Counts>>,
}

impl DispatcherThread {
    /// Starts the thread. It ends when this handle is dropped.
    pub fn start(server: &DataServer, local: &LocalNode, rules: RuleReader) -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot make the runtime of the thread that asks dispatchers")?;
        let lccp = {
            let _guard = runtime.enter();
            LccpSocket::open(local.address, local.config.cluster.protocol.number())?
        };
        lccp.hear_only(&[LCCP_REPLY as u8])?;
        let (questions, asked) = mpsc::channel(MOST_WAITING);
        let counts = Arc::default();
        let task = Task {
            answers: server.answers()?,
            lccp,
            rules,
            epoch: Instant::now(),
            clients: HashMap::new(),
            open: HashSet::new(),
            counts: Arc::clone(&counts),
            complaints: Complaints::about("cannot ask a dispatcher"),
        };
        // It is a thread of its own, so that nothing the daemon does delays a request.
        thread::Builder::new()
            .name("asking".to_owned())
            .spawn(move || runtime.block_on(task.serve(asked)))
            .context("cannot start the thread that asks dispatchers")?;
        Ok(Self { questions, counts })
    }

    /// Passes a question to the thread if there is room. If there is none, the question comes again with its request.
    pub fn ask(&self, question: Question) {
        if self.questions.try_send(question).is_err() {
            debug!(
                "too many questions to dispatchers wait: this one is dropped until its request comes again"
            );
        }
    }

    /// Returns the counters of all questions so far.
    pub fn counts(&self) -> Counts {
        *locked(&self.counts)
    }
}

/// The state of the thread that asks dispatchers and notes their answers.
struct Task {
    answers: Answers,
    lccp: LccpSocket,
    rules: RuleReader,
    epoch: Instant,
    /// One client for each dispatcher, by address. A question stands for all requests with its key.
    clients: HashMap<Ipv4Addr, DispatcherClient<AnswerKey>>,
    /// The keys of questions that have no answer yet.
    open: HashSet<AnswerKey>,
    counts: Arc<Mutex<Counts>>,
    complaints: Complaints,
}

impl Task {
    async fn serve(mut self, mut questions: mpsc::Receiver<Question>) {
        if let Err(error) = sys::run_first() {
            debug!("the thread that asks dispatchers gets no priority over other threads: {error}");
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
            *locked(&self.counts) = self.clients.values().map(DispatcherClient::counts).sum();
        }
        self.complaints
            .hear(self.answers.withdraw().map_err(Into::into));
    }

    fn now(&self) -> Moment {
        Moment::after_epoch(self.epoch.elapsed())
    }

    fn next_timeout(&self) -> Option<Instant> {
        let timeouts = self
            .clients
            .values()
            .filter_map(DispatcherClient::next_timeout);
        timeouts.min().map(|at| self.epoch + at.since_epoch())
    }

    /// Asks the dispatcher, unless a question with the same key is open.
    async fn ask(&mut self, question: Question) -> Result<()> {
        let key = question.key;
        if self.open.contains(&key) {
            return Ok(());
        }
        let (Some(rule_set), Ok(Some(request))) =
            (self.rules.rule_set(), Request::read(&question.text))
        else {
            return self.note(&key, None, NO_ANSWER);
        };
        let Some(&dispatcher) = rule_set.dispatchers.get(&question.service) else {
            return self.note(&key, None, NO_ANSWER);
        };
        let (from, cluster) = question.flow.ends();
        let flow = Flow::new(from, cluster)?;
        let pool = self.answers.pool(key.pool)?;
        let now = self.now();
        let client = self.clients.entry(dispatcher).or_insert_with(|| {
            // The wall clock is ahead of all numbers that an earlier daemon has used.
            DispatcherClient::new(clock_now().as_nanos())
        });
        match client.ask(now, now + rule_set.patience, flow, key) {
            Ok(number) => {
                self.open.insert(key);
                let (host, path) = (request.host(), request.path());
                let query = Query::new(flow, number, pool.id, host.as_bytes(), path.as_bytes());
                let query = Message::Query(query);
                let message =
                    sealing::seal(self.lccp.own(), &rule_set.keys, dispatcher, &query, &[]);
                // A question that cannot be sent is treated like one whose answer is late.
                Ok(self.lccp.send_to(&message, dispatcher).await?)
            }
            Err(key) => {
                // The program need not let requests of this service wait while this dispatcher is not asked.
                if let Some(rest) = client.rest(now) {
                    self.answers.rest(question.service, rest)?;
                }
                self.note(&key, None, NO_ANSWER)
            }
        }
    }

    fn hear(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) -> Result<()> {
        let Some(rule_set) = self.rules.rule_set() else {
            return Ok(());
        };
        let (own, window) = (self.lccp.own(), rule_set.clock_window);
        match sealing::open(own, &rule_set.keys, window, sender, payload, came) {
            Ok(received) => match received.message {
                Message::Reply(reply) => self.handle_reply(&rule_set, sender, &reply),
                _ => Ok(()),
            },
            Err(reject) => {
                debug!(%sender, "dropped an answer: {reject}");
                Ok(())
            }
        }
    }

    fn handle_reply(&mut self, rule_set: &RuleSet, sender: Ipv4Addr, reply: &Reply) -> Result<()> {
        let now = self.now();
        let answers = &self.answers;
        let can_serve = |key: &AnswerKey, server: Address| {
            let pool = answers.pool(key.pool);
            pool.is_ok_and(|pool| rule_set.named(server, &pool).is_some())
        };
        let Some(client) = self.clients.get_mut(&sender) else {
            debug!(%sender, "an answer from a node that was not asked");
            return Ok(());
        };
        match client.handle_reply(now, reply, can_serve) {
            ReplyOutcome::Answer(key, server, lifetime) => {
                let owner = rule_set.servers.get(&server).copied();
                self.note(&key, owner, lifetime)
            }
            ReplyOutcome::Nothing(key) => self.note(&key, None, NO_ANSWER),
            ReplyOutcome::Unasked => {
                debug!(%sender, "an answer to no open question");
                Ok(())
            }
        }
    }

    /// Notes for each question whose answer is late that there is none, so that its requests no longer wait.
    fn give_up_late(&mut self) -> Result<()> {
        let now = self.now();
        while let Some(key) = self
            .clients
            .values_mut()
            .find_map(|client| client.poll(now))
        {
            self.note(&key, None, NO_ANSWER)?;
        }
        Ok(())
    }

    /// Notes the answer that requests with this key find when they come again; without `owner`, that there is none.
    fn note(&mut self, key: &AnswerKey, owner: Option<u16>, lifetime: Duration) -> Result<()> {
        self.open.remove(key);
        Ok(self.answers.remember(key, owner, lifetime)?)
    }
}
