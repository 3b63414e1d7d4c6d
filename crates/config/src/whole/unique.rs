//! What may exist only once: names, addresses, and a service's address and port.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;

use toml::Spanned;

use crate::reading::report::Report;
use crate::sections::node::Keys as Node;
use crate::service::keys::Keys as Service;

/// Reports everything that exists twice.
pub(super) fn check(report: &mut Report<'_>, nodes: &[Node], services: &[Service]) {
    let names = nodes.iter().filter_map(|node| node.name.given());
    twice(
        report,
        "the node name",
        names,
        "give every node its own name",
    );
    let addresses = nodes.iter().filter_map(|node| node.address.given());
    twice(
        report,
        "the address",
        addresses,
        "give every node its own address",
    );
    let names = services.iter().filter_map(|service| service.name.given());
    twice(
        report,
        "the service name",
        names,
        "give every service its own name",
    );

    let mut taken = HashMap::new();
    let mut reported = Vec::new();
    for service in services {
        let Some(address) = service.address.given() else {
            continue;
        };
        if let Some(port) = service.port.given() {
            let line = report.line(&port.span());
            if let Some(first) = taken.insert((address.get_ref(), port.get_ref()), line) {
                let what = format!("{address} port {port} is a service already, on line {first}");
                let remedy = "choose another port or cluster address, or merge the two services";
                report.error(port.span(), what, remedy);
            }
        }
        let ip = address.get_ref().ip();
        let has_it = |node: &&Node| node.address.get().is_some_and(|own| own.ip() == ip);
        if let Some(owner) = nodes.iter().find(has_it)
            && !reported.contains(&ip)
        {
            reported.push(ip);
            let line = report.line(&owner.at);
            report.error(
                address.span(),
                format!("the cluster address {ip} is the own address of the node on line {line}"),
                "choose a cluster address that no machine has as its own",
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
        let line = *first.entry(value.get_ref()).or_insert(line);
        if line != report.line(&value.span()) {
            report.error(
                value.span(),
                format!("{what} {value} is taken on line {line}"),
                remedy,
            );
        }
    }
}
