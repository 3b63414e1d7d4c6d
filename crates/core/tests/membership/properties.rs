//! What holds for every sequence of HELLOs.

use proptest::prelude::*;

use super::model::{Model, steps};
use super::*;

proptest! {
    #[test]
    fn usable_is_what_the_rule_says(steps in steps(60)) {
        let (mut m, mut model) = (membership(), Model::default());
        for step in steps {
            step.apply(&mut m);
            model.apply(&step);
            while m.poll(ms(step.at)).is_some() {}
            for port in [WEB, API] {
                prop_assert_eq!(usable(&m, port), model.usable(step.at, port), "port {} at {}", port, step.at);
            }
        }
    }

    #[test]
    fn polling_at_timeouts_alone_misses_nothing(steps in steps(30)) {
        let run = |next: fn(&Membership, u64) -> u64| {
            let (mut m, mut now, mut log) = (membership(), 0, Vec::new());
            while m.poll(ms(0)).is_some() {}
            for step in &steps {
                while now < step.at {
                    now = next(&m, now).min(step.at);
                    log.extend(std::iter::from_fn(|| m.poll(ms(now))).map(|event| (now, event)));
                }
                step.apply(&mut m);
                log.extend(std::iter::from_fn(|| m.poll(ms(now))).map(|event| (now, event)));
            }
            log
        };
        let every_ms = run(|_, now| now + 1);
        let at_timeouts = run(|m, _| m.next_timeout().map_or(u64::MAX, |at| at.since_epoch().as_millis() as u64));
        prop_assert_eq!(every_ms, at_timeouts);
    }

    #[test]
    fn every_change_is_told(steps in steps(60)) {
        let mut m = membership();
        let mut told = std::collections::BTreeMap::new();
        for step in steps {
            step.apply(&mut m);
            while let Some(event) = m.poll(ms(step.at)) {
                if let Event::UsableChanged { at } = event {
                    told.insert(at, m.usable(at).cloned());
                }
            }
            for port in [WEB, API] {
                prop_assert_eq!(told.get(&service(port)), Some(&m.usable(service(port)).cloned()));
            }
        }
    }

    #[test]
    fn a_timeout_once_polled_is_past(steps in steps(30)) {
        let mut m = membership();
        for step in steps {
            step.apply(&mut m);
            while m.poll(ms(step.at)).is_some() {}
            prop_assert!(m.next_timeout().is_none_or(|timeout| timeout > ms(step.at)));
        }
    }
}
