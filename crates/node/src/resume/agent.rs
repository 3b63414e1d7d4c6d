//! The data server's part of resuming: orders come in, the agent carries them out, and their outcomes go back.

use std::{collections::HashMap, net::Ipv4Addr};

use baton_agent::resume::{Beginnings, Order, Outcome as Done, Resumer, Unfit, Witness};
use baton_dataplane::Responses;
use baton_wire::{Flow, Message, Outcome, Ready, Resume};
use tokio::sync::mpsc;
use tracing::warn;

use super::{Outgoing, admission::Admission, response_id::ends};

/// How many orders are remembered with their senders. If there are more, all are forgotten; connection servers repeat
/// the orders that still matter.
const ORDERS: usize = 8192;

/// Makes the function by which the agent tells the program where a resumed response ends. The program sees only the
/// rest of such a response, and without this the connection could not move on when the response is over.
pub fn witness(responses: Responses) -> Witness {
    Box::new(move |socket, rest| {
        let told = responses.expect(socket, rest);
        if let Err(error) = told {
            warn!("cannot note where a resumed response ends: {error}");
        }
    })
}

/// The agent, and which connection server sent each order.
pub struct Serving {
    agent: Resumer,
    admission: Admission,
    beginnings: Beginnings,
    done: mpsc::UnboundedReceiver<Outgoing>,
    done_sender: mpsc::UnboundedSender<Outgoing>,
    askers: HashMap<u64, Ipv4Addr>,
}

impl Serving {
    pub fn new(agent: Resumer, admission: Admission, beginnings: Beginnings) -> Self {
        let (done_sender, done) = mpsc::unbounded_channel();
        Self {
            agent,
            admission,
            beginnings,
            done,
            done_sender,
            askers: HashMap::new(),
        }
    }

    /// Takes an order. [`Serving::next`] returns its outcome.
    pub fn handle(&mut self, asker: Ipv4Addr, order: &Resume) {
        let (flow, number, progress) = (order.flow(), order.number(), order.progress());
        let Some(ends) = ends(flow) else { return };
        // An order without a request cancels an earlier order.
        let is_admitted = order.request().is_empty()
            || match self.admission.admits(ends, order.request(), progress.start) {
                Ok(is_admitted) => is_admitted,
                Err(error) => {
                    warn!("cannot find out whether a response may go on here: {error:#}");
                    false
                }
            };
        if !is_admitted {
            // Sending fails only if the daemon is ending.
            let _ = (self.done_sender).send(Outgoing::bare(
                asker,
                answer(flow, number, Done::Unreachable),
            ));
            return;
        }
        if self.askers.len() >= ORDERS {
            // These are mostly orders whose connections never came.
            self.askers.clear();
        }
        self.askers.insert(number, asker);
        let order = Order {
            ends,
            number,
            request: order.request().to_vec(),
            start: progress.start,
            acknowledged: progress.acknowledged,
            digest: progress.digest,
            length: progress.length,
        };
        let (agent, done) = (self.agent.clone(), self.done_sender.clone());
        tokio::spawn(async move {
            if let Some(outcome) = agent.order(&order).await {
                // Sending fails only if the daemon is ending.
                let _ = done.send(Outgoing::bare(asker, answer(flow, number, outcome)));
            }
        });
    }

    /// Waits for the next outcome and returns it with the node that is to be told.
    pub async fn next(&mut self) -> Option<Outgoing> {
        loop {
            tokio::select! {
                Some(answer) = self.done.recv() => return Some(answer),
                Some((ends, number, found)) = self.beginnings.recv() => {
                    let asker = self.askers.remove(&number);
                    if let (Some(asker), Ok(flow)) = (asker, Flow::new(ends.client, ends.cluster)) {
                        return Some(Outgoing::bare(asker, answer(flow, number, Done::Begun(found))));
                    }
                }
            }
        }
    }
}

fn answer(flow: Flow, number: u64, outcome: Done) -> Message {
    let (outcome, found) = match outcome {
        Done::Ready(found) => (Outcome::Ready, Some(found)),
        Done::Begun(found) => (Outcome::Begun, Some(found)),
        Done::Complete(found) => (Outcome::Complete, Some(found)),
        Done::Unreachable => (Outcome::Unreachable, None),
        Done::Full => (Outcome::Full, None),
        Done::Unfit(Unfit::Status) => (Outcome::Status, None),
        Done::Unfit(Unfit::NoLength) => (Outcome::NoLength, None),
        Done::Unfit(Unfit::Length) => (Outcome::Length, None),
        Done::Unfit(Unfit::Differs) => (Outcome::Differs, None),
    };
    Message::Ready(Ready {
        flow,
        number,
        outcome,
        digest: found.map(|found| found.digest),
        length: found.map(|found| found.length),
    })
}
