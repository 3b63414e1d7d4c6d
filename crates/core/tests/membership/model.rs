//! Random sequences of HELLOs, and the rule by which servers are usable, written as plainly as possible.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A HELLO, and the time at which it arrives.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: u64,
    pub(crate) node: u8,
    pub(crate) life: u64,
    pub(crate) sent: u64,
    pub(crate) draining: bool,
    pub(crate) words: Vec<(u16, Health)>,
}

impl Step {
    pub(crate) fn apply(&self, m: &mut Membership) {
        m.handle_hello(
            ms(self.at),
            node(self.node),
            clock(self.sent),
            &hello(self.life, &self.words).with_draining(self.draining),
        );
    }
}

/// Generates up to `most` steps, each some time after the one before.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let health = prop::sample::select(vec![Health::Unknown, Health::Passing, Health::Failing]);
    let words = vec((prop::sample::select(vec![WEB, API]), health), 0..3);
    // A gap is often shorter than `SILENCE`, sometimes longer, and sometimes exactly as long.
    let gap = prop_oneof![4 => 0u64..400, 1 => 0u64..3000, 1 => Just(1000)];
    vec(
        (
            gap,
            0u8..6,
            1u64..4,
            0u64..5,
            prop::bool::weighted(0.2),
            words,
        ),
        1..most,
    )
    .prop_map(|steps| {
        let mut at = 0;
        let step = |(gap, node, life, sent, draining, words)| {
            at += gap;
            Step {
                at,
                node,
                life,
                sent,
                draining,
                words,
            }
        };
        steps.into_iter().map(step).collect()
    })
}

/// The rule in plain code, which looks at every HELLO that was ever taken.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) taken: Vec<Step>,
}

impl Model {
    pub(crate) fn apply(&mut self, step: &Step) {
        let overtaken = self.last(step.node).is_some_and(|last| {
            ms(step.at) < ms(last.at) + SILENCE && (step.life, step.sent) < (last.life, last.sent)
        });
        if !overtaken {
            self.taken.push(step.clone());
        }
    }

    fn last(&self, node: u8) -> Option<&Step> {
        self.taken.iter().rev().find(|step| step.node == node)
    }

    pub(crate) fn usable(&self, now: u64, port: u16) -> Vec<u8> {
        let members: &[u8] = if port == WEB { &[0, 1, 2, 3] } else { &[0, 1] };
        let fails = |node: u8| {
            let mut words = self
                .taken
                .iter()
                .filter(|step| step.node == node)
                .flat_map(|step| &step.words);
            let last = words.rfind(|(at, health)| *at == port && *health != Health::Unknown);
            last.is_some_and(|(_, health)| *health == Health::Failing)
        };
        let drains = |node: u8| self.last(node).is_some_and(|last| last.draining);
        let heard =
            |node: u8| ms(now) < self.last(node).map_or(ms(0), |step| ms(step.at)) + SILENCE;
        let candidates: Vec<u8> = members
            .iter()
            .copied()
            .filter(|&node| !fails(node) && !drains(node))
            .collect();
        let heard: Vec<u8> = candidates
            .iter()
            .copied()
            .filter(|&node| heard(node))
            .collect();
        if heard.is_empty() { candidates } else { heard }
    }
}
