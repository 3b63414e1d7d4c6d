//! Random routes with and without conditions: the program's table and the rules together choose what the rule in plain
//! code chooses.

use baton_core::{
    routes::{Host, Route, RouteTable},
    rules::{Conditions, Request, Rules},
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{method, program::Program};

/// A route that owns its texts: service, host with or without `*.`, path, method, pool.
type Owned = (u16, Option<(bool, String)>, String, Option<String>, u16);

const METHODS: [&str; 3] = ["GET", "PUT", "DELETE"];

fn name() -> impl Strategy<Value = String> {
    vec("[ab]", 1..4).prop_map(|labels| labels.join("."))
}

fn a_method() -> impl Strategy<Value = String> {
    proptest::sample::select(&METHODS[..]).prop_map(str::to_owned)
}

fn routes() -> impl Strategy<Value = Vec<Owned>> {
    let host = option::of((any::<bool>(), name()));
    vec(
        (
            0..2u16,
            host,
            "/[ab]{0,3}",
            option::of(a_method()),
            any::<u16>(),
        ),
        0..24,
    )
}

fn requests() -> impl Strategy<Value = Vec<(u16, String, String, String)>> {
    vec((0..2u16, a_method(), name(), "/[ab]{0,4}"), 1..32)
}

fn borrowed(routes: &[Owned]) -> Vec<(Route<'_>, Conditions)> {
    let mut all = Vec::new();
    for owned in routes {
        let (service, host, path, wanted, pool) = owned;
        let conditions = wanted.as_deref().map(method).unwrap_or_default();
        let host = match host {
            None => Host::Any,
            Some((true, name)) => Host::Below(name),
            Some((false, name)) => Host::Name(name),
        };
        let route = Route {
            service: *service,
            host,
            path: path.as_bytes(),
            is_conditional: !conditions.is_empty(),
            pool: *pool,
        };
        all.push((route, conditions));
    }
    all
}

/// The rule in plain code: the best of all routes that match counts, and of equally good ones the first. Returns its
/// pool, and whether it has a condition.
fn rule(
    routes: &[Owned],
    service: u16,
    wanted: Option<&str>,
    host: &str,
    path: &str,
) -> Option<(u16, bool)> {
    let mut best: Option<((usize, usize, bool), u16)> = None;
    for (of, pattern, prefix, needs, pool) in routes {
        let specific = match pattern {
            None => 0,
            Some((true, name)) if host.ends_with(&format!(".{name}")) => 1 + name.len(),
            Some((false, name)) if host == name => usize::MAX,
            _ => continue,
        };
        let met = needs.is_none() || needs.as_deref() == wanted;
        if *of != service || !path.starts_with(prefix.as_str()) || !met {
            continue;
        }
        let rank = (specific, prefix.len(), needs.is_some());
        if best.is_none_or(|(best, _)| rank > best) {
            best = Some((rank, *pool));
        }
    }
    best.map(|((_, _, conditional), pool)| (pool, conditional))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn table_and_rules_do_what_the_rule_says(routes in routes(), requests in requests()) {
        let borrowed = borrowed(&routes);
        let plain: Vec<_> = borrowed.iter().map(|(route, _)| *route).collect();
        let program = Program::new(&RouteTable::compile(&plain).unwrap());
        let rules = Rules::new(borrowed);
        for (service, method, host, path) in requests {
            let best = |wanted| rule(&routes, service, wanted, &host, &path);
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
