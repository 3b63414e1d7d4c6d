//! What the thread does: one punted frame after the other, and the questions that are open.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    os::fd::AsFd as _,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_abi::{AnswerKey, LCCP_REPLY, NO_POOL, POLICY_CLIENT, PUNT_PATIENCE_NS};
use baton_core::{
    Moment,
    asker::{Asker, Counts, Heard},
};
use baton_dataplane::{Lead, Punt, Punts, Resumed, sys};
use baton_net::{LccpSocket, Readable};
use baton_wire::{Address, Flow, Message, Query, Reply, decode, encode};
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use tracing::{debug, warn};

use super::{
    Asks, Docket, Shared,
    question::{Question, Reading},
};
use crate::node::{egress::Egress, heartbeat::clock_now, locked::locked};

/// Between two signs of life, of which the program misses some before it stops asking.
const SIGN: Duration = Duration::from_millis(10);

/// How long the program believes one.
const PATIENCE: Duration = Duration::from_nanos(PUNT_PATIENCE_NS as u64);

/// So many requests may take as long as that.
const LONG: usize = 32;

/// Where `struct lccp_header` has its command.
const COMMAND_AT: usize = 2;

pub struct Bench {
    punts: Punts,
    egress: Egress,
    lccp: LccpSocket,
    shared: Arc<Shared>,
    epoch: Instant,
    /// By the dispatcher's address.
    askers: HashMap<Ipv4Addr, Asker<Question>>,
    /// What came of a connection while a question about its request is open.
    waiting: HashMap<Flow, Vec<Punt>>,
}

impl Bench {
    pub fn new(punts: Punts, egress: Egress, lccp: LccpSocket, shared: Arc<Shared>) -> Self {
        Self {
            punts,
            egress,
            lccp,
            shared,
            epoch: Instant::now(),
            askers: HashMap::new(),
            waiting: HashMap::new(),
        }
    }

    /// Judges until the daemon ends.
    pub async fn serve(mut self) {
        if let Err(error) = sys::run_first() {
            debug!("requests are judged with the priority of the rest: {error}");
        }
        match self.ready() {
            Ok(ready) => self.judge_until_the_end(&ready).await,
            Err(error) => warn!("requests that need user space go by host and path: {error}"),
        }
        logged(self.punts.withdraw().map_err(Into::into));
        self.judge_all().await;
        while let Some(question) = self.next_late(Moment::after_epoch(Duration::MAX)) {
            self.settle(question, None);
        }
    }

    fn ready(&self) -> Result<Readable> {
        let ring = self.punts.as_fd().try_clone_to_owned()?;
        Ok(Readable::new(ring)?)
    }

    async fn judge_until_the_end(&mut self, ready: &Readable) {
        let mut sign = interval(SIGN);
        sign.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut buffer = vec![0; LccpSocket::MAX_PACKET];
        while !self.shared.ends.load(Ordering::Relaxed) {
            let late = self.next_timeout();
            tokio::select! {
                readable = ready.wait() => {
                    logged(readable.map_err(Into::into));
                    self.judge_all().await;
                }
                received = self.lccp.recv_from(&mut buffer) => {
                    if let Ok(received) = received {
                        let (sender, payload) = (received.sender, received.payload.to_vec());
                        self.hear(sender, &payload);
                    }
                }
                _ = sleep_until(late.unwrap_or_else(Instant::now).into()), if late.is_some() => {
                    while let Some(question) = self.next_late(self.now()) {
                        self.settle(question, None);
                    }
                }
                _ = sign.tick() => {
                    logged(self.punts.give_sign(PATIENCE).map_err(Into::into));
                    self.judge_all().await;
                }
            }
            *locked(&self.shared.counts) = self.counts();
        }
    }

    fn now(&self) -> Moment {
        Moment::after_epoch(self.epoch.elapsed())
    }

    async fn judge_all(&mut self) {
        let punts: Vec<Punt> = match self.punts.wait(Duration::ZERO) {
            Ok(punts) => punts.collect(),
            Err(error) => return warn!("{error}"),
        };
        for (judged, punt) in punts.into_iter().enumerate() {
            if judged % LONG == LONG - 1 {
                logged(self.punts.give_sign(PATIENCE).map_err(Into::into));
            }
            logged(self.judge(punt).await);
        }
    }

    async fn judge(&mut self, punt: Punt) -> Result<()> {
        let reading = Reading::of(&punt.frame).context("a frame that is none of a client")?;
        if let Some(waiting) = self.waiting.get_mut(&reading.flow) {
            waiting.push(punt);
            return Ok(());
        }
        let docket = locked(&self.shared.docket).clone();
        let (Some(docket), Some(request)) = (docket, &reading.request) else {
            return self.resume(&punt, None, None);
        };
        let lead = match punt.key {
            // The program finds the route again by itself.
            Some(key) if u32::from(key.pool) != NO_POOL => Some(Lead {
                pool: key.pool,
                route: 0,
                resumes: false,
            }),
            _ => docket.lead(punt.service, request),
        };
        let (Some(key), Some(asks)) = (punt.key, docket.asks.get(&punt.service)) else {
            return self.resume(&punt, lead, None);
        };
        let index = lead.map_or(asks.pool, |lead| lead.pool);
        let in_map = self.punts.pool(index)?;
        let by_client = u32::from(in_map.policy) == POLICY_CLIENT;
        let question = Question {
            punt,
            lead,
            key: AnswerKey {
                pool: index,
                client: if by_client { key.client } else { 0 },
                ..key
            },
        };
        let query = |number| {
            let path = request.path().unwrap_or(request.target());
            Query::new(
                reading.flow,
                number,
                in_map.id,
                request.host().as_bytes(),
                path,
            )
        };
        self.ask(&docket, *asks, reading.flow, question, query)
            .await
    }

    /// Asks, or decides at once if that is of no use.
    async fn ask(
        &mut self,
        docket: &Docket,
        asks: Asks,
        flow: Flow,
        question: Question,
        query: impl FnOnce(u64) -> Query,
    ) -> Result<()> {
        let now = self.now();
        let asker = self.askers.entry(asks.dispatcher).or_insert_with(|| {
            // The clock is ahead of all numbers that an earlier daemon has used.
            Asker::new(clock_now().as_nanos())
        });
        match asker.ask(now, now + docket.patience, flow, question) {
            Ok(number) => {
                self.waiting.insert(flow, Vec::new());
                let message = Message::Query(query(number));
                let message = encode(&message, clock_now(), &docket.keys.current);
                // What cannot be sent is late.
                Ok(self.lccp.send_to(&message, asks.dispatcher).await?)
            }
            Err(question) => {
                // Nor need the program hand over what is only to be asked about.
                if let Some(rest) = asker.rest(now) {
                    self.punts.rest(question.punt.service, rest)?;
                }
                self.resume(&question.punt, question.lead, None)
            }
        }
    }

    /// A message to the daemon. Most are for the thread that has all the others.
    fn hear(&mut self, sender: Ipv4Addr, payload: &[u8]) {
        let is_reply = payload.get(COMMAND_AT).copied().map(u32::from) == Some(LCCP_REPLY);
        let Some(docket) = locked(&self.shared.docket).clone().filter(|_| is_reply) else {
            return;
        };
        let received = decode(payload, &docket.keys, clock_now(), docket.clock_window);
        if let Ok(Message::Reply(reply)) = received.map(|received| received.message) {
            self.handle_reply(&docket, sender, &reply);
        }
    }

    fn handle_reply(&mut self, docket: &Docket, sender: Ipv4Addr, reply: &Reply) {
        let now = self.now();
        let punts = &self.punts;
        let can_serve = |question: &Question, server: Address| {
            let index = docket.servers.get(&server).copied();
            let pool = punts.pool(question.key.pool).ok();
            index.zip(pool).is_some_and(|(index, pool)| {
                let word = pool.members.get(usize::from(index / 64));
                word.is_some_and(|word| word >> (index % 64) & 1 == 1)
            })
        };
        let Some(asker) = self.askers.get_mut(&sender) else {
            return debug!(%sender, "an answer from who was not asked");
        };
        match asker.handle_reply(now, reply, can_serve) {
            Heard::Answer(question, server, lifetime) => {
                let owner = docket.servers.get(&server).copied();
                if let Some(owner) = owner {
                    logged(
                        (self.punts.remember(&question.key, owner, lifetime)).map_err(Into::into),
                    );
                }
                self.settle(question, owner);
            }
            Heard::Nothing(question) => self.settle(question, None),
            Heard::Unasked => debug!(%sender, "an answer to no open question"),
        }
    }

    /// The request goes on, and what has waited behind it.
    fn settle(&mut self, question: Question, owner: Option<u16>) {
        logged(self.resume(&question.punt, question.lead, owner));
        let flow = Reading::of(&question.punt.frame).map(|reading| reading.flow);
        let waiting = flow.and_then(|flow| self.waiting.remove(&flow));
        for punt in waiting.unwrap_or_default() {
            logged(self.resume(&punt, question.lead, owner));
        }
    }

    fn resume(&self, punt: &Punt, lead: Option<Lead>, owner: Option<u16>) -> Result<()> {
        match self.punts.resume(punt, lead, owner)? {
            Resumed::Leaves(frame) => self.egress.send(&frame),
            Resumed::Done | Resumed::Dropped => Ok(()),
            Resumed::TooLong => {
                debug!(
                    "a request of {} bytes waits until its client sends it again",
                    punt.frame.len()
                );
                Ok(())
            }
        }
    }

    fn next_late(&mut self, now: Moment) -> Option<Question> {
        self.askers.values_mut().find_map(|asker| asker.poll(now))
    }

    fn next_timeout(&self) -> Option<Instant> {
        let timeouts = self.askers.values().filter_map(Asker::next_timeout);
        timeouts.min().map(|at| self.epoch + at.since_epoch())
    }

    fn counts(&self) -> Counts {
        self.askers.values().map(Asker::counts).sum()
    }
}

fn logged(result: Result<()>) {
    if let Err(error) = result {
        warn!("a request was not judged: {error:#}");
    }
}
