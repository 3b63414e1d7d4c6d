//! What the thread does: one punted frame after the other, and the questions that are open.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    os::fd::AsFd as _,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use baton_abi::{AnswerKey, LCCP_BEGINS, LCCP_REPLY, NO_POOL, POLICY_CLIENT, PUNT_PATIENCE_NS};
use baton_core::{
    Moment,
    asker::{Asker, Counts, Heard},
    heads::{Heads, Step, head_length},
    repeats::Repeats,
    rules::{BadRequest, Body, Request},
    whole_heads::WholeHeads,
};
use baton_dataplane::{Findings, Lead, Punt, Punts, RequestLength, Resumed, sys};
use baton_net::{LccpSocket, Readable};
use baton_wire::{Address, Flow, Keep, Message, NodePair, PathHash, Query, Reply, decode, encode};
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use tracing::{debug, warn};

use super::{
    Asks, Docket, Shared,
    acknowledge::acknowledge,
    divide::divide,
    line_up::line_up,
    question::{CUT, Question, Reading},
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
    /// Of requests that only their pools may answer, and that are in several frames.
    heads: Heads<Flow, Punt>,
    /// Those that were put together, in case something of them comes again.
    whole_heads: WholeHeads<Flow, Punt>,
    /// Heads of which some was acknowledged, sent again for a while.
    repeats: Repeats<Vec<Punt>>,
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
            heads: Heads::default(),
            whole_heads: WholeHeads::default(),
            repeats: Repeats::default(),
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
                    self.end_late_heads();
                    self.repeat_heads();
                    self.judge_all().await;
                }
            }
            *locked(&self.shared.counts) = self.counts();
        }
    }

    fn now(&self) -> Moment {
        Moment::after_epoch(self.epoch.elapsed())
    }

    /// Whoever does not come to the end of a head is refused.
    fn end_late_heads(&mut self) {
        for first in self.heads.late(self.now()) {
            logged(
                (self.punts.refuse(&first).map_err(Into::into)).and_then(|resumed| {
                    debug!("a request is refused: its head takes too long");
                    self.leave(&first, resumed)
                }),
            );
        }
    }

    /// What clients were told to have come they do not send again: should it be lost, it comes from here.
    fn repeat_heads(&mut self) {
        for frames in self.repeats.due(self.now()) {
            logged(self.repeat(&frames));
        }
    }

    /// Sends the frames of a head again that was judged.
    fn repeat(&self, frames: &[Punt]) -> Result<()> {
        for punt in frames {
            self.leave(punt, self.punts.repeat(punt)?)?;
        }
        Ok(())
    }

    /// Remembers what was read in several frames: should some of it get lost, it comes again from its client.
    fn keep_head(&mut self, now: Moment, flow: Flow, text: &[u8], frames: &[Punt]) -> Result<()> {
        let (Some(head), [first, _, ..]) = (head_length(text), frames) else {
            return Ok(());
        };
        let begin = Reading::of(&first.frame)
            .context("a frame that is none of a client")?
            .seq;
        let text = text[..head].to_owned();
        self.whole_heads
            .add(now, flow, begin, text, frames.to_owned());
        Ok(())
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
        // Before anything is known of routes, nobody may guess: the client sends its request again.
        let Some(docket) = locked(&self.shared.docket).clone() else {
            return Ok(());
        };
        if docket.strict.contains(&punt.service) {
            self.judge_strictly(&docket, reading, punt).await
        } else {
            let frames = vec![punt];
            self.decide(&docket, reading.flow, &reading.request, None, frames)
                .await
        }
    }

    /// Requests that only their pools may answer: each is judged by its whole head, and by itself.
    async fn judge_strictly(
        &mut self,
        docket: &Docket,
        reading: Reading,
        punt: Punt,
    ) -> Result<()> {
        if let Some(at) = punt.divide_at {
            for part in divide(&punt, at.get().into())? {
                self.leave(&part, self.punts.let_go(&part)?)?;
            }
            return Ok(());
        }
        let (now, flow, seq) = (self.now(), reading.flow, reading.seq);
        let (is_behind, is_repeat) = (punt.is_behind, punt.is_repeat);
        let is_begun = match &reading.request {
            Ok(Some(request)) => !request.has_head(),
            Ok(None) => true,
            Err(_) => false,
        };
        let step = match self.heads.add(flow, seq, &reading.payload, punt) {
            Step::Foreign(punt) if is_begun && !is_behind => {
                self.heads.begin(now, flow, seq, &reading.payload, punt)
            }
            step => step,
        };
        match step {
            // What it was behind has gone its way, or was never here.
            Step::Foreign(punt) if is_behind => {
                match self.whole_heads.again(now, &flow, seq, &reading.payload) {
                    // But not what comes of that.
                    Some(frames) if !is_repeat => self.repeat(frames),
                    _ => self.follow(&[punt]),
                }
            }
            Step::Waits => Ok(()),
            Step::Stuck => self.tell_what_has_come(flow),
            Step::TooLong(first) => {
                debug!(?flow, "a request is refused: its head does not end");
                self.leave(&first, self.punts.refuse(&first)?)
            }
            Step::Foreign(punt) => {
                let length = match &reading.request {
                    Ok(Some(request)) => length(&reading.payload, request),
                    _ => None,
                };
                self.decide(docket, flow, &reading.request, length, vec![punt])
                    .await
            }
            Step::Whole {
                text,
                mut frames,
                is_acknowledged,
            } => {
                line_up(&mut frames)?;
                let rest = cut_behind_head(&text, &mut frames)?;
                if is_acknowledged {
                    self.repeats.add(now, frames.clone(), is_acknowledged);
                }
                self.keep_head(now, flow, &text, &frames)?;
                let request = Request::read(&text);
                let length = match &request {
                    Ok(Some(request)) => length(&text, request),
                    _ => None,
                };
                self.decide(docket, flow, &request, length, frames).await?;
                let Some(rest) = rest else {
                    return Ok(());
                };
                match self.waiting.get_mut(&flow) {
                    Some(waiting) => waiting.push(rest),
                    None => self.leave(&rest, self.punts.let_go(&rest)?)?,
                }
                Ok(())
            }
        }
    }

    /// The client of a head that is not whole hears what has come of it, once all before it has come to its server.
    fn tell_what_has_come(&mut self, flow: Flow) -> Result<()> {
        let Some(first) = self.heads.first(&flow) else {
            return Ok(());
        };
        let reading = Reading::of(&first.frame).context("a frame that is none of a client")?;
        if self.punts.has_owner(&reading.key)? {
            return self.leave(first, self.punts.ask(first)?);
        }
        // It is the first of its connection.
        self.acknowledge(flow, reading.seq)
    }

    /// All before this sequence number has come to its server.
    fn acknowledge(&mut self, flow: Flow, come: u32) -> Result<()> {
        match self.heads.acknowledge(&flow, come) {
            Some((next, latest)) => self.egress.send(&acknowledge(latest, next)?),
            None => Ok(()),
        }
    }

    /// Leads a request, which is in these frames, where it belongs.
    async fn decide(
        &mut self,
        docket: &Docket,
        flow: Flow,
        request: &Result<Option<Request>, BadRequest>,
        length: Option<RequestLength>,
        mut frames: Vec<Punt>,
    ) -> Result<()> {
        let behind = frames.split_off(1);
        let Some(punt) = frames.pop() else {
            return Ok(());
        };
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => return self.resume(&punt, None, None, CUT),
            Err(bad) => {
                debug!(?flow, "a request is refused: {bad}");
                return self.leave(&punt, self.punts.refuse(&punt)?);
            }
        };
        let findings = Findings {
            path: request.path().hash().map(PathHash::get),
            is_cut: request.is_cut(docket.rules.name_hosts(punt.service)),
            length,
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
            self.resume(&punt, lead, None, findings)?;
            return self.follow(&behind);
        };
        let index = lead.map_or(asks.pool, |lead| lead.pool);
        let in_map = self.punts.pool(index)?;
        let by_client = u32::from(in_map.policy) == POLICY_CLIENT;
        let question = Question {
            punt,
            lead,
            findings,
            key: AnswerKey {
                pool: index,
                client: if by_client { key.client } else { 0 },
                ..key
            },
        };
        let query = |number| {
            Query::new(
                flow,
                number,
                in_map.id,
                request.host().as_bytes(),
                request.path().as_bytes(),
            )
        };
        self.ask(docket, *asks, flow, question, query).await?;
        match self.waiting.get_mut(&flow) {
            Some(waiting) => waiting.extend(behind),
            None => self.follow(&behind)?,
        }
        Ok(())
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
                let pair = NodePair {
                    from: self.lccp.own(),
                    to: asks.dispatcher,
                };
                let key = docket.keys.with(asks.dispatcher).current;
                let message = encode(&message, &[], clock_now(), &key, pair);
                // What cannot be sent is late.
                Ok(self.lccp.send_to(&message, asks.dispatcher).await?)
            }
            Err(question) => {
                // Nor need the program hand over what is only to be asked about.
                if let Some(rest) = asker.rest(now) {
                    self.punts.rest(question.punt.service, rest)?;
                }
                self.resume(&question.punt, question.lead, None, question.findings)
            }
        }
    }

    /// A message to the daemon. Most are for the thread that has all the others.
    fn hear(&mut self, sender: Ipv4Addr, payload: &[u8]) {
        let command = payload.get(COMMAND_AT).copied().map(u32::from);
        let is_ours = matches!(command, Some(LCCP_REPLY | LCCP_BEGINS));
        let Some(docket) = locked(&self.shared.docket).clone().filter(|_| is_ours) else {
            return;
        };
        let pair = NodePair {
            from: sender,
            to: self.lccp.own(),
        };
        let received = decode(
            payload,
            pair,
            &docket.keys.with(sender),
            clock_now(),
            docket.clock_window,
        );
        match received.map(|received| received.message) {
            Ok(Message::Reply(reply)) => self.handle_reply(&docket, sender, &reply),
            // The program has passed on only what the owner says.
            Ok(Message::Begun {
                flow,
                keep: Keep::Come,
                at,
                ..
            }) => logged(self.acknowledge(flow, at)),
            _ => {}
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
        logged(self.resume(&question.punt, question.lead, owner, question.findings));
        let flow = Reading::of(&question.punt.frame).map(|reading| reading.flow);
        let waiting = flow.and_then(|flow| self.waiting.remove(&flow));
        logged(self.follow(&waiting.unwrap_or_default()));
    }

    /// What came behind a request that was judged goes its way.
    fn follow(&self, frames: &[Punt]) -> Result<()> {
        for punt in frames {
            self.leave(punt, self.punts.follow(punt)?)?;
        }
        Ok(())
    }

    fn resume(
        &self,
        punt: &Punt,
        lead: Option<Lead>,
        owner: Option<u16>,
        findings: Findings,
    ) -> Result<()> {
        let resumed = self.punts.resume_by(punt, lead, owner, findings)?;
        self.leave(punt, resumed)
    }

    /// What the program has made of a frame goes its way.
    fn leave(&self, punt: &Punt, resumed: Resumed) -> Result<()> {
        match resumed {
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

/// Where the request ends that the text begins with; `None` if nobody can say.
fn length(text: &[u8], request: &Request) -> Option<RequestLength> {
    // Shorter than the longest that is put together.
    let head = u32::try_from(head_length(text)?).ok()?;
    match request.body() {
        Body::Chunked => Some(RequestLength::Chunked(head)),
        // Sequence numbers can tell of no more.
        Body::Bytes(body) => (u32::try_from(body).ok().filter(|body| *body < 1 << 30))
            .map(|body| RequestLength::Bytes { head, body }),
        Body::Unknown => None,
    }
}

/// Leaves nothing in the last of several frames but the end of the head that the text begins with, and says what was behind
/// that: another request may be, which nobody has judged.
fn cut_behind_head(text: &[u8], frames: &mut [Punt]) -> Result<Option<Punt>> {
    let ([_, .., last], Some(head)) = (frames, head_length(text)) else {
        return Ok(None);
    };
    let payload = Reading::of(&last.frame)
        .context("a frame that is none of a client")?
        .payload
        .len();
    let behind = text.len() - head;
    if behind == 0 {
        return Ok(None);
    }
    let at = payload
        .checked_sub(behind)
        .context("a head that ends before its last frame")?;
    let [end, rest] = divide(last, at)?;
    *last = end;
    Ok(Some(rest))
}

fn logged(result: Result<()>) {
    if let Err(error) = result {
        warn!("a request was not judged: {error:#}");
    }
}
