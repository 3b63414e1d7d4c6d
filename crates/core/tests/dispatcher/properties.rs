//! Random questions, answers and delays: each question has one outcome, in time.

use std::collections::BTreeMap;

use baton_core::dispatcher::{DEAD_AFTER, DispatcherClient, REST, ReplyOutcome};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{PATIENCE, at, flow, reply, server};

#[derive(Clone, Debug)]
enum Act {
    Ask,
    /// A reply of this kind to the question that was asked this many questions before the last one.
    Reply(usize, Kind),
    Wait(u64),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Right,
    Lie,
    Nobody,
    OtherFlow,
    Ahead,
}

fn act() -> impl Strategy<Value = Act> {
    let kind = prop_oneof![
        6 => Just(Kind::Right),
        1 => Just(Kind::Lie),
        1 => Just(Kind::Nobody),
        1 => Just(Kind::OtherFlow),
        1 => Just(Kind::Ahead),
    ];
    prop_oneof![
        6 => Just(Act::Ask),
        4 => (0usize..4, kind).prop_map(|(back, kind)| Act::Reply(back, kind)),
        4 => (0u64..8).prop_map(Act::Wait),
        1 => (900u64..1200).prop_map(Act::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn each_question_has_one_outcome_in_time(
        acts in vec(act(), 1..120),
        first in prop_oneof![Just(0), Just(u64::MAX - 3), any::<u64>()],
    ) {
        let mut client = DispatcherClient::new(first);
        let (mut now, mut questions) = (0u64, 0usize);
        // For each open question: the number of the message, and when it was asked.
        let mut open: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut numbers: Vec<(usize, u64)> = Vec::new();
        let mut late_in_a_row = 0u32;
        for act in acts {
            match act {
                Act::Ask => {
                    match client.ask(at(now), at(now) + PATIENCE, flow(questions as u16), questions) {
                        Ok(number) => {
                            prop_assert!(numbers.iter().all(|(_, known)| *known != number));
                            numbers.push((questions, number));
                            open.insert(questions, (number, now));
                        }
                        Err(back) => {
                            prop_assert_eq!(back, questions);
                            // Only a dispatcher that has missed several in a row counts as dead.
                            prop_assert!(late_in_a_row >= DEAD_AFTER);
                        }
                    }
                    questions += 1;
                }
                Act::Reply(back, kind) => {
                    let Some((question, number)) = numbers.iter().rev().nth(back).copied() else {
                        continue;
                    };
                    let own = flow(question as u16);
                    let said = match kind {
                        Kind::Right => reply(own, number, Some(server(11))),
                        Kind::Lie => reply(own, number, Some(server(12))),
                        Kind::Nobody => reply(own, number, None),
                        Kind::OtherFlow => reply(flow(u16::MAX), number, Some(server(11))),
                        Kind::Ahead => reply(own, number.wrapping_add(1000), Some(server(11))),
                    };
                    let lies = client.counts().lie;
                    let heard = client.handle_reply(at(now), &said, |_, found| found == server(11));
                    let was_open = open.contains_key(&question);
                    match kind {
                        Kind::Right if was_open => {
                            prop_assert!(matches!(heard, ReplyOutcome::Answer(about, ..) if about == question));
                            late_in_a_row = 0;
                        }
                        Kind::Lie | Kind::Nobody if was_open => {
                            prop_assert_eq!(heard, ReplyOutcome::Nothing(question));
                            late_in_a_row = 0;
                        }
                        _ => prop_assert_eq!(heard, ReplyOutcome::Unasked),
                    }
                    let is_lie = match kind {
                        Kind::Right | Kind::Nobody => false,
                        Kind::Lie | Kind::OtherFlow => was_open,
                        Kind::Ahead => true,
                    };
                    prop_assert_eq!(client.counts().lie, lies + u64::from(is_lie));
                    if !matches!(kind, Kind::OtherFlow | Kind::Ahead) {
                        open.remove(&question);
                    }
                }
                Act::Wait(ms) => {
                    // Time passes in steps, as for a caller that heeds next_timeout.
                    for _ in 0..ms {
                        now += 1;
                        while let Some(late) = client.poll(at(now)) {
                            let (_, asked) = open.remove(&late).unwrap();
                            late_in_a_row += 1;
                            prop_assert_eq!(now, asked + PATIENCE.as_millis() as u64);
                        }
                    }
                }
            }
            let counts = client.counts();
            prop_assert_eq!(counts.asked as usize + counts.dead as usize, questions);
            prop_assert!(open.is_empty() || client.next_timeout().is_some());
        }
        // After a rest the dispatcher is tried again, however often it failed to answer.
        now += REST.as_millis() as u64 + 10;
        while let Some(late) = client.poll(at(now)) {
            prop_assert!(open.remove(&late).is_some());
        }
        prop_assert!(open.is_empty());
        now += REST.as_millis() as u64;
        prop_assert!(client.ask(at(now), at(now) + PATIENCE, flow(0), questions).is_ok());
    }
}
