//! Checks of `redirect = "https"` and `hsts`: clients that are sent to HTTPS must find it, and find agents on their way.

use std::num::NonZeroU16;

use crate::reading::report::Report;
use crate::service::Split;
use crate::service::keys::{Keys, Nodes};
use crate::service::protocol::ClientProtocol;
use crate::service::terminate::TlsMode;

/// The port of HTTPS that browsers use by themselves.
const HTTPS: u16 = 443;

/// For each service that redirects, the port that its clients are sent to. Reports what is wrong with such services, and
/// warns of `hsts` that no client hears of who begins with HTTP.
pub(super) fn check(
    report: &mut Report<'_>,
    services: &[Keys],
    members: &[Nodes],
) -> Vec<Option<NonZeroU16>> {
    warn_of_hsts_alone(report, services);
    let mut ports = Vec::new();
    for (service, nodes) in services.iter().zip(members) {
        if service.redirect.get().is_none() {
            ports.push(None);
            continue;
        }
        has_no_servers(report, service);
        listens_alone(report, (service, nodes), services, members);
        ports.push(https_port(report, service, services));
    }
    ports
}

/// Whether two services have the same cluster address, as far as that is known.
fn are_beside(one: &Keys, other: &Keys) -> bool {
    one.address.get().is_some() && one.address.get() == other.address.get()
}

/// The port of the TLS service at the address of `service`: 443 if there are several.
fn https_port(report: &mut Report<'_>, service: &Keys, services: &[Keys]) -> Option<NonZeroU16> {
    let is_tls = |other: &&Keys| other.protocol.get() == Some(&ClientProtocol::Tls);
    let beside = services.iter().filter(|other| are_beside(service, other));
    let ports: Vec<_> = (beside.filter(is_tls))
        .filter_map(|other| other.port.get().copied())
        .collect();
    let of_browsers = ports.iter().find(|port| port.get() == HTTPS);
    match (of_browsers, &ports[..]) {
        (Some(port), _) | (None, [port]) => return Some(*port),
        // A service that could not be read has been reported already.
        (None, []) if services.iter().any(|other| other.protocol.is_wrong() || other.port.is_wrong()) => {}
        (None, []) => report.error(
            service.redirect.span(),
            "there is no HTTPS at this address to which clients could be sent",
            "add a [[service]] with protocol = \"tls\" and the same address, or remove redirect",
        ),
        (None, _) => report.error(
            service.redirect.span(),
            "there are several services with protocol = \"tls\" at this address, and none at port 443",
            "give port 443 to the one that clients are to be sent to",
        ),
    }
    None
}

/// Reports keys that are about servers, or about what clients ask for.
fn has_no_servers(report: &mut Report<'_>, service: &Keys) {
    if service.protocol.get() == Some(&ClientProtocol::Tls) {
        report.error(
            service.protocol.span(),
            "clients that are to be sent to HTTPS speak HTTP, not TLS",
            "remove protocol, or redirect",
        );
    }
    let mut foreign = Vec::new();
    if service.split.get() == Some(&Split::Ack) {
        foreign.push(("split = \"ack\"", service.split.span()));
    }
    foreign.extend([
        ("relay_to", service.relay_to.span()),
        ("large", service.large.span()),
        ("pool", service.pool.span()),
        ("route", service.route.span()),
    ]);
    for (key, place) in foreign {
        let Some(place) = place else { continue };
        report.error(
            place,
            format!("{key} is about servers, and this service has none: its agents redirect every request"),
            "remove it, or redirect; routes of the service with protocol = \"tls\" see the requests afterwards",
        );
    }
    for place in super::resume::places(service) {
        report.error(
            place,
            "a redirect is too short to be resumed",
            "remove resume",
        );
    }
}

/// Reports services whose servers would listen where the agents redirect.
fn listens_alone(
    report: &mut Report<'_>,
    (service, nodes): (&Keys, &Nodes),
    services: &[Keys],
    members: &[Nodes],
) {
    for (other, others) in services.iter().zip(members) {
        let is_here = others.known().flat_map(|known| known.iter());
        let mut is_here = is_here.filter(|node| nodes.known().any(|known| known.contains(node)));
        let is_same = other
            .server_port
            .get()
            .is_some_and(|port| service.port.get() == Some(port));
        if are_beside(service, other)
            && other.server_socket.is_absent()
            && other.tls.get() == Some(&TlsMode::Terminate)
            && is_same
            && let Some(node) = is_here.next()
        {
            let line = report.line(&other.at);
            report.error(
                service.redirect.span(),
                format!(
                    "on {node} the agent redirects at the port at which the server of the service on line {line} listens"
                ),
                "give that service another server_port, like 8080, and have its servers listen there",
            );
        }
    }
}

fn warn_of_hsts_alone(report: &mut Report<'_>, services: &[Keys]) {
    for service in services {
        let Some(place) = service.hsts.span() else {
            continue;
        };
        let redirects = |other: &Keys| other.redirect.get().is_some() && are_beside(service, other);
        if !services.iter().any(redirects) {
            report.warning(
                Some(place),
                "hsts is heard only by clients that use HTTPS already, and nothing here sends them there",
                "add a [[service]] with port = 80, the same address and redirect = \"https\"",
            );
        }
    }
}
