//! Servers with queues, to which connections go in turn: independent arrivals and departures, in virtual time.

use std::num::NonZeroU8;
use std::time::Duration;

use baton_core::Moment;
use baton_core::policy::{Chooser, Load, Policy, Server};
use baton_core::slots::Slot;
use baton_wire::Permille;

use crate::chance::Chance;

/// How a server finishes its connections.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// The server does one request at a time, this many per second, and is busy while it has one.
    Requests(f64),
    /// Each connection stays for this many seconds on average, and uses one permille of the processors.
    Sessions(f64),
}

#[derive(Debug)]
pub struct Node {
    pub name: String,
    pub weight: u8,
    pub work: Work,
    pub connections: u32,
    /// The part of the last second in which the node was busy, seconds.
    pub busy: f64,
    /// Connections that the node got in the last second.
    pub got: u32,
    /// The load that the node reported a second ago, which is what the policy knows.
    said: Option<Load>,
}

impl Node {
    pub fn new(name: &str, weight: u8, work: Work) -> Self {
        Self {
            name: name.into(),
            weight,
            work,
            connections: 0,
            busy: 0.0,
            got: 0,
            said: None,
        }
    }

    /// Returns the departures per second.
    fn rate(&self) -> f64 {
        match self.work {
            Work::Requests(rate) if self.connections > 0 => rate,
            Work::Requests(_) => 0.0,
            Work::Sessions(seconds) => f64::from(self.connections) / seconds,
        }
    }

    fn load(&self) -> Load {
        Load {
            connections: self.connections,
            cpu: Permille::saturating((self.busy * 1000.0) as u16),
        }
    }
}

/// A connection server and its data servers.
pub struct Queues {
    pub nodes: Vec<Node>,
    pub chooser: Chooser,
    chance: Chance,
    seconds: u64,
    turn: usize,
}

impl Queues {
    pub fn new(policy: Policy, nodes: Vec<Node>, seed: u64) -> Self {
        Self {
            nodes,
            chooser: Chooser::new(policy),
            chance: Chance::new(seed),
            seconds: 0,
            turn: 0,
        }
    }

    /// Simulates one second, in which about `arrivals` connections come. Returns each node's share of the turns.
    pub fn second(&mut self, arrivals: f64) -> Vec<f64> {
        let servers = servers(&self.nodes);
        let now = Moment::after_epoch(Duration::from_secs(self.seconds));
        let choices = self.chooser.choices(now, &servers).to_vec();
        for node in &mut self.nodes {
            node.said = Some(node.load());
            (node.busy, node.got) = (0.0, 0);
        }
        self.run(&choices, arrivals);
        self.seconds += 1;
        shares(&choices, self.nodes.len())
    }

    fn run(&mut self, choices: &[u16], arrivals: f64) {
        let mut left = 1.0;
        loop {
            let rates: Vec<f64> = self.nodes.iter().map(Node::rate).collect();
            let all = arrivals + rates.iter().sum::<f64>();
            let wait = self.chance.wait(all);
            for node in &mut self.nodes {
                node.busy += wait.min(left)
                    * match node.work {
                        Work::Requests(_) => f64::from(u8::from(node.connections > 0)),
                        Work::Sessions(_) => f64::from(node.connections) / 1000.0,
                    };
            }
            left -= wait;
            if left <= 0.0 {
                return;
            }
            let mut event = self.chance.part() * all - arrivals;
            if event < 0.0 {
                let node = &mut self.nodes[usize::from(choices[self.turn % choices.len()])];
                node.connections += 1;
                node.got += 1;
                self.turn += 1;
                continue;
            }
            for (node, rate) in self.nodes.iter_mut().zip(rates) {
                if event < rate {
                    node.connections -= 1;
                    break;
                }
                event -= rate;
            }
        }
    }
}

pub fn servers(nodes: &[Node]) -> Vec<Server<'_>> {
    (0..)
        .zip(nodes)
        .map(|(slot, node)| Server {
            slot: Slot::from(slot),
            name: &node.name,
            weight: NonZeroU8::new(node.weight).unwrap(),
            load: node.said,
        })
        .collect()
}

/// Returns the share of each of `servers` slots.
pub fn shares(choices: &[u16], servers: usize) -> Vec<f64> {
    let mut shares = vec![0.0; servers];
    for &slot in choices {
        shares[usize::from(slot)] += 1.0 / choices.len() as f64;
    }
    shares
}
