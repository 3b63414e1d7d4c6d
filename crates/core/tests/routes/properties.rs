//! Random routes, hosts and paths, made of so few letters that they often match.

use baton_core::routes::{Host, Route, RouteTable};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::program::Program;
use crate::rule;

/// A route that owns its texts: service, host with or without `*.`, path, pool.
pub type Owned = (u16, Option<(bool, String)>, String, u16);

fn name() -> impl Strategy<Value = String> {
    vec("[abA]{1,2}", 1..5).prop_map(|labels| labels.join("."))
}

fn path() -> impl Strategy<Value = String> {
    "/[/ab]{0,4}"
}

fn routes() -> impl Strategy<Value = Vec<Owned>> {
    let host = option::weighted(0.8, (any::<bool>(), name()));
    vec((0..3u16, host, path(), any::<u16>()), 0..40)
}

/// Generates a request as a client sends it. Some of the names are in the routes, and some have a port.
fn request(routes: &[Owned]) -> impl Strategy<Value = (u16, Option<String>, String)> + use<> {
    let named: Vec<String> = routes
        .iter()
        .filter_map(|route| Some(route.1.as_ref()?.1.clone()))
        .chain(["a".into()])
        .collect();
    let named = proptest::sample::select(named);
    let host = prop_oneof![
        named.clone(),
        (name(), named.clone()).prop_map(|(below, name)| format!("{below}.{name}")),
        named.prop_map(|name| name.to_uppercase() + ":80"),
        name(),
        "[abA.:\\[\\]]{0,8}",
    ];
    (
        0..3u16,
        option::weighted(0.9, host),
        prop_oneof![9 => "/[/ab]{0,6}", 1 => "[/ab*]{0,2}"],
    )
}

pub fn borrowed(routes: &[Owned]) -> Vec<Route<'_>> {
    routes
        .iter()
        .map(|(service, host, path, pool)| Route {
            service: *service,
            host: match host {
                None => Host::Any,
                Some((true, name)) => Host::Below(name),
                Some((false, name)) => Host::Name(name),
            },
            path: path.as_bytes(),
            is_conditional: false,
            pool: *pool,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_program_does_what_the_rule_says(
        (routes, requests) in routes().prop_flat_map(|routes| {
            let requests = vec(request(&routes), 1..40);
            (Just(routes), requests)
        })
    ) {
        let routes = borrowed(&routes);
        let table = RouteTable::compile(&routes).unwrap();
        let program = Program::new(&table);
        for (service, host, target) in requests {
            let (host, target) = (host.as_deref(), target.as_bytes());
            prop_assert_eq!(
                program.pool(service, host, target),
                rule::pool(&routes, service, host, target),
                "{:?} {:?}", host, table
            );
        }
    }

    /// No entry is superfluous: for the target that is the entry's path, the rule takes the entry's pool.
    #[test]
    fn each_entry_is_asked_for(routes in routes()) {
        let routes = borrowed(&routes);
        let table = RouteTable::compile(&routes).unwrap();
        for entry in &table.entries {
            // A host of exactly this pattern, because no other name here has a "c".
            let host = match entry.host {
                0 => None,
                number => {
                    let host = &table.hosts[usize::from(number) - 1];
                    Some(if host.wildcard { format!("c.{}", host.name) } else { host.name.clone() })
                }
            };
            let ruled = rule::pool(&routes, entry.service, host.as_deref(), &entry.path);
            prop_assert_eq!(ruled, entry.leads.pool);
            prop_assert!(ruled.is_some() && !entry.leads.has_conditions);
        }
    }
}
