//! Random routes with and without conditions: the program's table and the rules together choose what the rule in plain
//! code chooses.

use baton_core::{
    routes::{Route, RouteTable},
    rules::{Request, Rules},
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::method;
use crate::program::Program;
use crate::properties::{Owned, borrowed};
use crate::rule;

const METHODS: [&str; 3] = ["GET", "PUT", "DELETE"];

fn name() -> impl Strategy<Value = String> {
    vec("[ab]", 1..4).prop_map(|labels| labels.join("."))
}

fn a_method() -> impl Strategy<Value = String> {
    proptest::sample::select(&METHODS[..]).prop_map(str::to_owned)
}

/// Generates routes, and the only method that each takes, if it does not take all.
fn routes() -> impl Strategy<Value = (Vec<Owned>, Vec<Option<String>>)> {
    let host = option::of((any::<bool>(), name()));
    let route = (0..2u16, host, "/[ab]{0,3}", any::<u16>());
    vec((route, option::of(a_method())), 0..24).prop_map(|routes| routes.into_iter().unzip())
}

fn requests() -> impl Strategy<Value = Vec<(u16, String, String, String)>> {
    vec((0..2u16, a_method(), name(), "/[ab]{0,4}"), 1..32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn table_and_rules_do_what_the_rule_says((routes, wanted) in routes(), requests in requests()) {
        let mut plain = borrowed(&routes);
        for (route, wanted) in plain.iter_mut().zip(&wanted) {
            route.is_conditional = wanted.is_some();
        }
        let routes: Vec<(Route<'_>, Option<&str>)> =
            plain.iter().copied().zip(wanted.iter().map(Option::as_deref)).collect();
        let program = Program::new(&RouteTable::compile(&plain).unwrap());
        let with_conditions = |(route, wanted): &(_, Option<&str>)| (*route, wanted.map(method).unwrap_or_default());
        let rules = Rules::new(routes.iter().map(with_conditions));
        for (service, method, host, path) in requests {
            let best = |wanted| rule::best(&routes, service, wanted, Some(&host), path.as_bytes());
            let pool = |wanted| best(wanted).map(|(pool, _)| pool);
            let text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let judged = rules.pool(service, &Request::read(text.as_bytes()).unwrap().unwrap());
            prop_assert_eq!(judged, pool(Some(&method)));
            let leads = program.leads(service, Some(&host), path.as_bytes());
            prop_assert_eq!(leads.and_then(|leads| leads.pool), pool(None));
            // The table says that user space must be asked if, and only if, some request for this host and path needs
            // it.
            let conditional = |wanted| best(Some(wanted)).is_some_and(|(_, conditional)| conditional);
            let needed = METHODS.into_iter().any(conditional);
            prop_assert_eq!(leads.is_some_and(|leads| leads.has_conditions), needed);
        }
    }
}
