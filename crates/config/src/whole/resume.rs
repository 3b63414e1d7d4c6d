//! Checks that `resume` can work: it needs to know which request a response answers.

use std::iter;

use crate::reading::parsed::Parsed;
use crate::reading::report::Report;
use crate::service::keys::Keys;
use crate::service::{Handover, Split};

/// The places where a service and its routes say `resume = true`.
pub(super) fn places(service: &Keys) -> impl Iterator<Item = std::ops::Range<usize>> {
    let of_routes = service.route.iter().map(|route| &route.resume);
    let given = iter::once(&service.resume)
        .chain(of_routes)
        .filter_map(Parsed::given);
    given
        .filter(|resume| *resume.get_ref())
        .map(toml::Spanned::span)
}

/// Reports a `resume` of the service or of one of its routes that could have no effect.
pub(super) fn check(report: &mut Report<'_>, service: &Keys) {
    let (why, remedy) = if service.split.get() == Some(&Split::Ack) {
        (
            "split = \"ack\" no data server reads requests",
            "remove split, or resume",
        )
    } else if service.handover.get() == Some(&Handover::Never) {
        (
            "handover = \"never\" a connection stays with its data server",
            "remove handover, or resume",
        )
    } else {
        return;
    };
    for place in places(service) {
        let what = format!("resume asks another data server the same request, and with {why}");
        report.error(place, what, remedy);
    }
}
