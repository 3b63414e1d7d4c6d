//! Which node was asked about which response: only that node's answer counts. Another node could guess the number of
//! the order, because the numbers are consecutive and each node knows those of the orders that it got.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
};

use baton_wire::{Flow, Message};

/// How many orders, and how many YIELDs, are remembered: far more than are ever under way. If one is forgotten, it is
/// sent again, or a client's packet settles the matter.
const MOST: usize = 32768;

/// The orders and YIELDs that went out, and to which nodes.
#[derive(Default)]
pub struct ExpectedAnswers {
    orders: BTreeMap<u64, Ipv4Addr>,
    yields: HashMap<Flow, Ipv4Addr>,
}

impl ExpectedAnswers {
    /// Notes that a message leaves for `to`.
    pub fn note(&mut self, to: Ipv4Addr, message: &Message) {
        match message {
            Message::Resume(order) => {
                self.orders.insert(order.number(), to);
                if self.orders.len() > MOST {
                    self.orders.pop_first();
                }
            }
            Message::Yield { flow, .. } => {
                // Each YIELD is repeated, so the ones that still matter are noted again.
                if self.yields.len() >= MOST {
                    self.yields.clear();
                }
                self.yields.insert(*flow, to);
            }
            _ => {}
        }
    }

    /// Whether a message may be accepted: it is no answer, or it comes from the node that was asked.
    pub fn expects(&self, sender: Ipv4Addr, message: &Message) -> bool {
        let asked = match message {
            Message::Ready(ready) => self.orders.get(&ready.number),
            Message::Yielded { flow, .. } => self.yields.get(flow),
            _ => return true,
        };
        asked == Some(&sender)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use baton_wire::{Outcome, Progress, Ready, Resume, YieldAnswer};

    use super::*;

    const DS1: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 11);
    const DS2: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 12);

    fn flow(port: u16) -> Flow {
        let client = SocketAddr::from(([198, 51, 100, 7], port));
        let cluster = SocketAddr::from(([192, 0, 2, 100], 80));
        Flow::new(client, cluster).expect("one IP version")
    }

    fn order(number: u64) -> Message {
        let order = Resume::new(flow(1), number, Progress::default(), Vec::new());
        Message::Resume(order.expect("a short request"))
    }

    fn ready(number: u64) -> Message {
        Message::Ready(Ready {
            flow: flow(1),
            number,
            outcome: Outcome::Begun,
            digest: None,
            length: None,
        })
    }

    #[test]
    fn only_who_was_asked_answers() {
        let mut asked = ExpectedAnswers::default();
        asked.note(DS1, &order(7));
        assert!(asked.expects(DS1, &ready(7)));
        assert!(!asked.expects(DS2, &ready(7)));
        assert!(!asked.expects(DS1, &ready(8)));

        let next = None;
        asked.note(
            DS2,
            &Message::Yield {
                flow: flow(1),
                next,
            },
        );
        let kept = |port| Message::Yielded {
            flow: flow(port),
            answer: YieldAnswer::Kept,
        };
        assert!(asked.expects(DS2, &kept(1)));
        assert!(!asked.expects(DS1, &kept(1)));
        assert!(!asked.expects(DS2, &kept(2)));
        assert!(asked.expects(DS1, &order(9)), "no answer");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut asked = ExpectedAnswers::default();
        for number in 0..=MOST as u64 {
            asked.note(DS1, &order(number));
        }
        assert!(!asked.expects(DS1, &ready(0)));
        assert!(asked.expects(DS1, &ready(1)));
    }
}
