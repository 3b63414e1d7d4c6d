//! Checks that a service asks of its clients only what their protocol can say. Where servers alone have the keys of
//! TLS, nobody reads requests.

use crate::reading::report::Report;
use crate::service::health::Kind;
use crate::service::keys::Keys;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::terminate::TlsMode;
use crate::service::{Handover, Split};

/// Folders that `packaging/baton.service` hides from the daemon and its children (PrivateTmp, ProtectHome).
const HIDDEN: [&str; 5] = ["/tmp", "/var/tmp", "/home", "/root", "/run/user"];

/// Reports keys of a service that have no meaning for what its clients speak.
pub(super) fn check(report: &mut Report<'_>, service: &Keys) {
    match service.protocol.get() {
        Some(ClientProtocol::Tls) => {
            needs_requests(report, service);
            not_of_tls(report, service);
        }
        Some(ClientProtocol::Http) => only_for_tls(report, service),
        None => {}
    }
}

/// Reports what needs requests, which nobody can read.
fn needs_requests(report: &mut Report<'_>, service: &Keys) {
    let mut needing = Vec::new();
    for policy in service.policies_by_request() {
        needing.push((format!("policy \"{}\"", policy.get_ref()), policy.span()));
    }
    for (name, place) in [
        ("large", service.large.span()),
        ("a dispatcher", service.dispatcher.span()),
    ] {
        needing.extend(place.map(|place| (name.to_owned(), place)));
    }
    needing.extend(super::resume::places(service).map(|place| ("resume".to_owned(), place)));
    if service.handover.get() == Some(&Handover::EveryRequest) {
        needing.push((
            "handover = \"every-request\"".to_owned(),
            service.at.clone(),
        ));
    }
    // An agent that speaks TLS reads them.
    let is_read = service.tls.get() == Some(&TlsMode::Terminate);
    let of_routes = (service.route.iter())
        .filter(|_| !is_read)
        .flat_map(|route| route.about_requests());
    needing.extend(of_routes.map(|(key, place)| (key.to_owned(), place)));
    for (what, place) in needing {
        report.error(
            place,
            format!("{what} needs the requests, and with protocol = \"tls\" only the servers can read them"),
            "remove it: of TLS, routes see the host and alpn",
        );
    }
}

/// Reports what does not go together with TLS for other reasons.
fn not_of_tls(report: &mut Report<'_>, service: &Keys) {
    if service.unknown_name.get() == Some(&UnknownName::Refuse) && service.route.items().is_empty()
    {
        report.warning(
            service.unknown_name.span(),
            "this service has no route, so every connection is refused",
            "add a [[service.route]] for each name, or remove the key",
        );
    }
    if service.split.get() == Some(&Split::Ack) {
        let what = "TLS clients speak first, and split = \"ack\" is for servers that do";
        report.error(service.at.clone(), what, "remove split");
    }
    let is_terminated = service.tls.get() == Some(&TlsMode::Terminate);
    if !is_terminated
        && service.health.get().and_then(|health| health.kind.get()) == Some(&Kind::Http)
    {
        report.error(
            service.at.clone(),
            "the health check of kind \"http\" does not speak TLS, as the servers of this service do",
            "choose kind = \"tcp\"",
        );
    }
    if is_terminated {
        terminates(report, service);
        return;
    }
    for (key, place) in [
        ("certificates", service.certificates.span()),
        ("server_port", service.server_port.span()),
        ("server_socket", service.server_socket.span()),
        ("client_address", service.client_address.span()),
        ("hsts", service.hsts.span()),
        ("http2", service.http2.span()),
    ] {
        let Some(place) = place else { continue };
        report.error(
            place,
            format!("{key} is for tls = \"terminate\", and here the servers speak TLS themselves"),
            "remove it, or add tls = \"terminate\" to the service",
        );
    }
}

/// Reports what is missing where agents speak TLS, and what they cannot do.
fn terminates(report: &mut Report<'_>, service: &Keys) {
    if service.certificates.items().is_empty() && !service.certificates.is_wrong() {
        report.error(
            service.tls.span(),
            "tls = \"terminate\" needs certificates",
            "add certificates = [\"…\"], PEM files with a certificate and its private key",
        );
    }
    local_server(report, service);
    for place in (service.route.items().iter()).filter_map(|route| route.alpn.span()) {
        report.error(
            place,
            "alpn leads to servers that speak TLS themselves, and here the agents do, which speak HTTP alone",
            "remove it, or give those servers a service with tls = \"pass\"",
        );
    }
    if let Some(place) = service.relay_to.span() {
        report.error(
            place,
            "relay_to does not go together with tls = \"terminate\"",
            "publish the container's port at the cluster address of its node, and remove relay_to",
        );
    }
}

/// Reports what is wrong with the way from the agent to the local server.
fn local_server(report: &mut Report<'_>, service: &Keys) {
    let is_own_port = service
        .port
        .get()
        .is_some_and(|port| service.server_port.get() == Some(port));
    if is_own_port && service.server_socket.is_absent() {
        report.error(
            service.server_port.span().or(service.tls.span()),
            "the servers cannot listen at the service's own port, where the agents speak TLS",
            "give server_port the port at which the servers listen for HTTP",
        );
    }
    if service.server_socket.is_absent()
        && let Some(place) = service.client_address.span()
    {
        report.error(
            place,
            "client_address is for servers at a unix socket: at server_port they see the client's own address",
            "remove it, or write server_socket in place of server_port",
        );
    }
    let Some(socket) = service.server_socket.given() else {
        return;
    };
    if service.server_port.given().is_some() {
        report.error(
            socket.span(),
            "server_socket and server_port are two ways to the same servers",
            "remove one of them",
        );
    }
    if let Some(folder) = (HIDDEN.iter()).find(|folder| socket.get_ref().starts_with(folder)) {
        report.warning(
            Some(socket.span()),
            format!("the unit of baton for systemd hides {folder} from the daemon and the agent"),
            "have the servers listen in a folder of their own in /run",
        );
    }
}

fn only_for_tls(report: &mut Report<'_>, service: &Keys) {
    let of_routes = service.route.iter().filter_map(|route| route.alpn.span());
    let places = of_routes.map(|place| ("alpn", place));
    let of_service = [
        ("unknown_name", service.unknown_name.span()),
        ("tls", service.tls.span()),
        ("certificates", service.certificates.span()),
        ("server_port", service.server_port.span()),
        ("server_socket", service.server_socket.span()),
        ("client_address", service.client_address.span()),
        ("hsts", service.hsts.span()),
        ("http2", service.http2.span()),
    ];
    let of_service = of_service
        .into_iter()
        .filter_map(|(key, place)| Some((key, place?)));
    for (key, place) in places.chain(of_service) {
        report.error(
            place,
            format!("{key} is about TLS, and clients of this service speak HTTP"),
            "remove it, or add protocol = \"tls\" to the service",
        );
    }
}
