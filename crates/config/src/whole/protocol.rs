//! Checks that a service asks of its clients only what their protocol can say. Where servers alone have the keys of TLS,
//! nobody reads requests.

use std::ops::Range;

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::service::health::Probe;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::route;
use crate::service::{self, Handover, Split};

/// Reports keys of a service that have no meaning for what its clients speak.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    match service.protocol {
        Some(ClientProtocol::Tls) => {
            of_service(report, service);
            for route in &service.routes {
                of_route(report, route);
            }
        }
        Some(ClientProtocol::Http) => only_for_tls(report, service),
        None => {}
    }
}

fn of_service(report: &mut Report<'_>, service: &service::Draft) {
    for policy in service.policies_by_request() {
        let what = format!("policy \"{}\"", policy.get_ref());
        reads_requests(report, policy.span(), &what);
    }
    if let Parsed::Right(large) = &service.large {
        reads_requests(report, large.get_ref().header.clone(), "large");
    }
    if let Parsed::Right(dispatcher) = &service.dispatcher {
        reads_requests(report, dispatcher.span(), "a dispatcher");
    }
    let of_routes = service.routes.iter().map(|route| &route.resume);
    for resume in [&service.resume].into_iter().chain(of_routes) {
        if let Parsed::Right(resume) = resume
            && *resume.get_ref()
        {
            reads_requests(report, resume.span(), "resume");
        }
    }
    if let Parsed::Right(unknown_name) = &service.unknown_name
        && *unknown_name.get_ref() == UnknownName::Refuse
        && service.routes.is_empty()
    {
        report.warning(
            unknown_name.span(),
            Problem::new(
                "this service has no route, so every connection is refused",
                "add a [[service.route]] for each name, or remove the key",
            ),
        );
    }
    if service.handover == Some(Handover::EveryRequest) {
        let what = "handover = \"every-request\"";
        reads_requests(report, service.header.clone(), what);
    }
    if service.split == Some(Split::Ack) {
        report.error(
            service.header.clone(),
            Problem::new(
                "TLS clients speak first, and split = \"ack\" is for servers that do",
                "remove split",
            ),
        );
    }
    let checks = service.health.as_ref().and_then(Option::as_ref);
    if checks.is_some_and(|health| matches!(health.probe, Probe::Http(_))) {
        report.error(
            service.header.clone(),
            Problem::new(
                "the health check of kind \"http\" does not speak TLS, as the servers of this service do",
                "choose kind = \"tcp\"",
            ),
        );
    }
}

fn of_route(report: &mut Report<'_>, route: &route::Draft) {
    for (key, place) in route.about_requests() {
        reads_requests(report, place, key);
    }
}

/// Reports what needs requests that nobody reads.
fn reads_requests(report: &mut Report<'_>, place: Range<usize>, what: &str) {
    report.error(
        place,
        Problem::new(
            format!(
                "{what} needs the requests, and with protocol = \"tls\" only the servers can read them"
            ),
            "remove it: of TLS, routes see the host and alpn",
        ),
    );
}

fn only_for_tls(report: &mut Report<'_>, service: &service::Draft) {
    let of_routes = service.routes.iter().filter_map(|route| route.alpn.span());
    let places = of_routes.map(|place| ("alpn", place));
    let unknown_name = service.unknown_name.span();
    for (key, place) in places.chain(unknown_name.map(|place| ("unknown_name", place))) {
        report.error(
            place,
            Problem::new(
                format!("{key} is about TLS, and clients of this service speak HTTP"),
                "remove it, or add protocol = \"tls\" to the service",
            ),
        );
    }
}
