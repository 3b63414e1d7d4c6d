//! What may exist only once: names, addresses, and a service's address and port.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::net::IpAddr;

use toml::Spanned;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::sections::node;
use crate::service;

/// Reports everything that exists twice.
pub(super) fn check(report: &mut Report<'_>, nodes: &[node::Draft], services: &[service::Draft]) {
    let names = nodes.iter().filter_map(|node| node.name.as_ref());
    twice(
        report,
        "the node name",
        names,
        "give every node its own name",
    );
    let addresses = nodes.iter().filter_map(|node| node.address.as_ref());
    twice(
        report,
        "the address",
        addresses,
        "give every node its own address",
    );
    let names = services.iter().filter_map(|service| service.name.as_ref());
    twice(
        report,
        "the service name",
        names,
        "give every service its own name",
    );

    let mut taken = HashMap::new();
    for service in services {
        let (Some(address), Some(port)) = (&service.address, &service.port) else {
            continue;
        };
        let line = report.line(&port.span());
        if let Some(first) = taken.insert((address.get_ref(), port.get_ref()), line) {
            report.error(
                port.span(),
                Problem::new(
                    format!(
                        "{} port {} is a service already, on line {first}",
                        address, port
                    ),
                    "choose another port or cluster address, or merge the two services",
                ),
            );
        }
    }
    let mut reported = Vec::new();
    for address in services
        .iter()
        .filter_map(|service| service.address.as_ref())
    {
        let ip = address.get_ref().ip();
        let owner = nodes.iter().find(|node| ip_of(node) == Some(ip));
        if let Some(owner) = owner
            && !reported.contains(&ip)
        {
            reported.push(ip);
            let line = report.line(&owner.header);
            report.error(
                address.span(),
                Problem::new(
                    format!(
                        "the cluster address {ip} is the own address of the node on line {line}"
                    ),
                    "choose a cluster address that no machine has as its own",
                ),
            );
        }
    }
}

/// Reports each value that has occurred before, with the line of its first occurrence.
pub(super) fn twice<'a, T: Eq + Hash + Display + 'a>(
    report: &mut Report<'_>,
    what: &str,
    values: impl Iterator<Item = &'a Spanned<T>>,
    remedy: &str,
) {
    let mut first = HashMap::new();
    for value in values {
        let line = report.line(&value.span());
        match first.get(value.get_ref()) {
            None => {
                first.insert(value.get_ref(), line);
            }
            Some(line) => report.error(
                value.span(),
                Problem::new(format!("{what} {value} is taken on line {line}"), remedy),
            ),
        }
    }
}

fn ip_of(node: &node::Draft) -> Option<IpAddr> {
    node.address.as_ref().map(|address| address.get_ref().ip())
}
