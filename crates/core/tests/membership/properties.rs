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
}
