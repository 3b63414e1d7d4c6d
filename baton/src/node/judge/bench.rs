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
    rules::{BadRequest, Body, Request},
    whole_heads::WholeHeads,
};
use baton_dataplane::{Findings, Lead, Punt, Punts, RequestLength, Resumed, sys};
use baton_net::{
    LccpSocket, Readable,
    client_frame::{self, ETHERNET, Segment},
};
use baton_wire::{Address, Arrival, Flow, Keep, Message, NodePair, PathHash, Query, Reply, decode};
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use tracing::{debug, warn};

use super::{
    Asks, Docket, Shared,
    question::{CUT, Question, Reading},
};
use crate::node::{
    complaints::Complaints, egress::Egress, heartbeat::clock_now, locked::locked,
    segments::Segments,
};

/// Between two signs of life, of which the program misses some before it stops asking.
const SIGN: Duration = Duration::from_millis(10);

/// How long the program believes one.
const PATIENCE: Duration = Duration::from_nanos(PUNT_PATIENCE_NS as u64);

/// So many requests may take as long as that.
const LONG: usize = 32;

/// So many frames of a connection wait for the answer to a question about its request.
const MOST_WAITING: usize = 256;

/// Where `struct lccp_header` has its command.
const COMMAND_AT: usize = 2;

pub struct Bench {
    punts: Punts,
    egress: Egress,
    /// Where it is not known by which frame to answer.
    segments: Segments,
    lccp: LccpSocket,
    shared: Arc<Shared>,
    epoch: Instant,
    /// By the dispatcher's address.
    askers: HashMap<Ipv4Addr, Asker<Question>>,
    /// Of requests that only their pools may answer, and that are in several frames.
    heads: Heads<Flow, Punt>,
    /// Those that were put together, in case something of them comes again.
    whole_heads: WholeHeads<Flow, Punt>,
    /// What came of a connection while a question about its request is open.
    waiting: HashMap<Flow, Vec<Punt>>,
    complaints: Complaints,
}

impl Bench {
    pub fn new(
        punts: Punts,
        egress: Egress,
        segments: Segments,
        lccp: LccpSocket,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            punts,
            egress,
            segments,
            lccp,
            shared,
            epoch: Instant::now(),
            askers: HashMap::new(),
            heads: Heads::default(),
            whole_heads: WholeHeads::default(),
            waiting: HashMap::new(),
            complaints: Complaints::about("a request was not judged"),
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
        self.complaints
            .hear(self.punts.withdraw().map_err(Into::into));
        self.judge_all().await;
        while let Some(question) = self.next_late(Moment::after_epoch(Duration::MAX)) {
            self.settle(question, None);
        }
    }

    fn ready(&self) -> Result<Readable> {
        // The one before has ended, and all that it had with it.
        self.punts.forget_flows()?;
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
                    self.complaints.hear(readable.map_err(Into::into));
                    self.judge_all().await;
                }
                received = self.lccp.recv_from(&mut buffer) => {
                    if let Ok(received) = received {
                        let (sender, payload) = (received.sender, received.payload.to_vec());
                        let came = received.came();
                        self.hear(sender, &payload, came);
                    }
                }
                _ = sleep_until(late.unwrap_or_else(Instant::now).into()), if late.is_some() => {
                    while let Some(question) = self.next_late(self.now()) {
                        self.settle(question, None);
                    }
                }
                _ = sign.tick() => {
                    self.complaints.hear(self.punts.give_sign(PATIENCE).map_err(Into::into));
                    self.end_late_heads();
                    self.tell_quiet_clients();
                    self.repeat_heads();
                    let given_up = self.give_up_heads();
                    self.complaints.hear(given_up);
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
            debug!("a request is refused: its head takes too long");
            self.complaints.hear(self.refuse(&first));
        }
    }

    /// Whoever sends no more of a head may wait until it hears that some has come.
    fn tell_quiet_clients(&mut self) {
        for flow in self.heads.quiet(self.now()) {
            let told = self.tell_what_has_come(flow);
            self.complaints.hear(told);
        }
    }

    /// Where another connection server has taken over, the rest of each head goes there: so does what has come, of which
    /// clients were told.
    fn give_up_heads(&mut self) -> Result<()> {
        if !self.punts.are_passed_on()? {
            return Ok(());
        }
        let forgotten = self.punts.forget_flows().map_err(Into::into);
        self.complaints.hear(forgotten);
        for punt in self.heads.give_up() {
            let resumed = self.punts.let_go(&punt).map_err(Into::into);
            self.complaints
                .hear(resumed.and_then(|resumed| self.leave(&punt, resumed)));
        }
        Ok(())
    }

    /// What clients were told to have come they do not send again: should it be lost, it comes from here.
    fn repeat_heads(&mut self) {
        for frames in self.whole_heads.due(self.now()) {
            self.complaints.hear(self.repeat_head(&frames));
        }
    }

    /// Unless it has come to its server: by then its client may be gone, or use its port again.
    fn repeat_head(&self, frames: &[Punt]) -> Result<()> {
        let Some(first) = frames.first() else {
            return Ok(());
        };
        let Segment { key, seq, .. } = Segment::read(&first.frame)?;
        if self.punts.is_settled(&key, seq)? {
            return Ok(());
        }
        self.repeat(frames)
    }

    /// Sends the frames of a head again that was judged.
    fn repeat(&self, frames: &[Punt]) -> Result<()> {
        for punt in frames {
            self.leave(punt, self.punts.repeat(punt)?)?;
        }
        Ok(())
    }

    /// Remembers what was read in several frames: should some of it get lost, it comes again from its client.
    fn keep_head(
        &mut self,
        now: Moment,
        flow: Flow,
        text: &[u8],
        frames: &[Punt],
        is_acknowledged: bool,
    ) -> Result<()> {
        let (Some(head), [first, _, ..]) = (head_length(text), frames) else {
            return Ok(());
        };
        let begin = Segment::read(&first.frame)?.seq;
        let text = text[..head].to_owned();
        let frames = frames.to_owned();
        self.whole_heads
            .add(now, flow, begin, text, frames, is_acknowledged);
        Ok(())
    }

    async fn judge_all(&mut self) {
        let punts: Vec<Punt> = match self.punts.wait(Duration::ZERO) {
            Ok(punts) => punts.collect(),
            Err(error) => return warn!("{error}"),
        };
        for (judged, punt) in punts.into_iter().enumerate() {
            if judged % LONG == LONG - 1 {
                self.complaints
                    .hear(self.punts.give_sign(PATIENCE).map_err(Into::into));
            }
            let outcome = self.judge(punt).await;
            self.complaints.hear(outcome);
        }
    }

    async fn judge(&mut self, punt: Punt) -> Result<()> {
        let reading = Reading::of(&punt.frame)?;
        if let Some(waiting) = self.waiting.get_mut(&reading.flow) {
            // What is dropped its client sends again.
            if waiting.len() < MOST_WAITING {
                waiting.push(punt);
            }
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
        if !is_behind {
            self.heads.pass(&flow, seq);
        }
        let step = match self.heads.add(now, flow, seq, &reading.payload, punt) {
            Step::Foreign(punt)
                if is_begun && !is_behind && self.was_judged(&reading, &punt)? =>
            {
                debug!(?flow, "a head that was judged begins once more");
                return Ok(());
            }
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
                self.refuse(&first)
            }
            Step::Foreign(punt) => {
                let length = match &reading.request {
                    Ok(Some(request)) => length(&reading.payload, request),
                    _ => None,
                };
                let (punt, rest) = cut_behind_request(punt, &reading.payload, length)?;
                self.decide(docket, flow, &reading.request, length, vec![punt])
                    .await?;
                self.let_go_behind(flow, rest)
            }
            Step::Whole {
                text,
                mut frames,
                is_acknowledged,
            } => {
                let mut in_line: Vec<_> = frames.iter_mut().map(|punt| &mut punt.frame).collect();
                client_frame::line_up(&mut in_line)?;
                let rest = cut_behind_head(&text, &mut frames)?;
                self.keep_head(now, flow, &text, &frames, is_acknowledged)?;
                let request = Request::read(&text);
                let length = match &request {
                    Ok(Some(request)) => length(&text, request),
                    _ => None,
                };
                self.decide(docket, flow, &request, length, frames).await?;
                self.let_go_behind(flow, rest)
            }
        }
    }

    /// Whether this is the beginning of a head that was put together and has gone its way: its client has sent it again while
    /// that was on its way here. It must not wait for an end that does not come.
    fn was_judged(&self, reading: &Reading, punt: &Punt) -> Result<bool> {
        let Reading { flow, seq, .. } = *reading;
        let whole = self
            .whole_heads
            .again(self.now(), &flow, seq, &reading.payload);
        if whole.is_none() {
            return Ok(false);
        }
        let key = Segment::read(&punt.frame)?.key;
        Ok(self.punts.has_begun(&key, seq)?)
    }

    /// What was cut off behind a request, which nobody has judged, goes behind that.
    fn let_go_behind(&mut self, flow: Flow, rest: Option<Punt>) -> Result<()> {
        let Some(rest) = rest else {
            return Ok(());
        };
        match self.waiting.get_mut(&flow) {
            Some(waiting) => waiting.push(rest),
            None => self.leave(&rest, self.punts.let_go(&rest)?)?,
        }
        Ok(())
    }

    /// The client of a head that is not whole hears what has come of it, once all before it has come to its server.
    fn tell_what_has_come(&mut self, flow: Flow) -> Result<()> {
        let Some(first) = self.heads.first(&flow) else {
            return Ok(());
        };
        let Segment { key, seq, .. } = Segment::read(&first.frame)?;
        if self.punts.has_owner(&key)? {
            self.leave(first, self.punts.ask(first)?)?;
            // Unless it was of an earlier connection with these ports, and has gone.
            if self.punts.has_owner(&key)? {
                return Ok(());
            }
        }
        // It is the first of its connection.
        self.acknowledge(flow, seq)
    }

    /// All before this sequence number has come to its server.
    fn acknowledge(&mut self, flow: Flow, come: u32) -> Result<()> {
        match self.heads.acknowledge(&flow, come) {
            Some((next, latest)) => {
                let frame = client_frame::acknowledge(&latest.frame, next)?;
                match frame.get(ETHERNET..).filter(|_| latest.is_carried) {
                    Some(packet) => self.segments.forward(packet),
                    None => self.egress.send(&frame),
                }
            }
            None => Ok(()),
        }
    }

    /// The client hears that this begins no request that servers answer. What a data server has brought back the program
    /// cannot answer: that connection is reset.
    fn refuse(&self, punt: &Punt) -> Result<()> {
        self.leave(punt, self.punts.refuse(punt)?)?;
        match punt.frame.get(ETHERNET..).filter(|_| punt.is_carried) {
            Some(packet) => self.segments.refuse(packet),
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
                return self.refuse(&punt);
            }
        };
        let findings = Findings {
            path: request.path().hash(docket.hash_key).map(PathHash::get),
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
                let pair = NodePair {
                    from: self.lccp.own(),
                    to: asks.dispatcher,
                };
                let message = docket.seal(query(number), pair);
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
    fn hear(&mut self, sender: Ipv4Addr, payload: &[u8], came: Arrival) {
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
            came,
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
            }) => {
                let told = self.acknowledge(flow, at);
                self.complaints.hear(told);
            }
            _ => {}
        }
    }

    fn handle_reply(&mut self, docket: &Docket, sender: Ipv4Addr, reply: &Reply) {
        let now = self.now();
        let punts = &self.punts;
        let can_serve = |question: &Question, server: Address| {
            let pool = punts.pool(question.key.pool);
            pool.is_ok_and(|pool| docket.named(server, &pool).is_some())
        };
        let Some(asker) = self.askers.get_mut(&sender) else {
            return debug!(%sender, "an answer from who was not asked");
        };
        match asker.handle_reply(now, reply, can_serve) {
            Heard::Answer(question, server, lifetime) => {
                let owner = docket.servers.get(&server).copied();
                if let Some(owner) = owner {
                    self.complaints.hear(
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
        self.complaints
            .hear(self.resume(&question.punt, question.lead, owner, question.findings));
        let segment = Segment::read(&question.punt.frame).ok();
        let waiting = segment.and_then(|segment| self.waiting.remove(&segment.flow));
        self.complaints
            .hear(self.follow(&waiting.unwrap_or_default()));
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

/// Where the request ends that the text begins with; `None` if its head is not whole.
fn length(text: &[u8], request: &Request) -> Option<RequestLength> {
    // Shorter than the longest that is put together.
    let head = u32::try_from(head_length(text)?).ok()?;
    Some(match request.body() {
        Body::Chunked => RequestLength::Chunked(head),
        Body::Bytes(body) => RequestLength::Bytes { head, body },
        Body::Unknown => RequestLength::Endless(head),
    })
}

/// Leaves nothing in the last of several frames but the end of the head that the text begins with, and says what was behind
/// that: another request may be, which nobody has judged.
fn cut_behind_head(text: &[u8], frames: &mut [Punt]) -> Result<Option<Punt>> {
    let ([_, .., last], Some(head)) = (frames, head_length(text)) else {
        return Ok(None);
    };
    let payload = Segment::read(&last.frame)?.payload.len();
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

/// Leaves nothing in the one frame of a request but that, and says what was behind it. The program has not seen where it
/// ends, or would have divided the frame: its method is none that the program knows.
fn cut_behind_request(
    punt: Punt,
    payload: &[u8],
    length: Option<RequestLength>,
) -> Result<(Punt, Option<Punt>)> {
    let end = match length {
        Some(RequestLength::Bytes { head, body }) => u64::from(head).saturating_add(body),
        Some(RequestLength::Chunked(head) | RequestLength::Endless(head)) => head.into(),
        None => return Ok((punt, None)),
    };
    match usize::try_from(end) {
        Ok(at) if at < payload.len() => {
            let [request, rest] = divide(&punt, at)?;
            Ok((request, Some(rest)))
        }
        _ => Ok((punt, None)),
    }
}

/// A punted frame becomes two, each of which is yet to be looked at.
fn divide(punt: &Punt, at: usize) -> Result<[Punt; 2]> {
    let part = |frame| Punt {
        interface: punt.interface,
        service: punt.service,
        key: punt.key,
        divide_at: None,
        is_behind: false,
        is_repeat: false,
        is_carried: punt.is_carried,
        frame,
    };
    Ok(client_frame::divide(&punt.frame, at)?.map(part))
}
