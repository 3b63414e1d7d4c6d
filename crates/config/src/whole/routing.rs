//! What a service cannot have whose owners see to their requests: what only a connection server that follows them can do.

use crate::field::Parsed;
use crate::problem::Problem;
use crate::report::Report;
use crate::service::{self, Routing};

/// Reports `routing = "owner"` with any of that.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    let Parsed::Right(routing) = &service.routing else {
        return;
    };
    if *routing.get_ref() != Routing::Owner {
        return;
    }
    let is_on = |flag: &Parsed<bool>| matches!(flag, Parsed::Right(flag) if *flag.get_ref());
    let found = [
        (
            "resume",
            is_on(&service.resume) || service.routes.iter().any(|route| is_on(&route.resume)),
        ),
        (
            "a dispatcher",
            !matches!(service.dispatcher, Parsed::Absent),
        ),
    ];
    for (what, _) in found.iter().filter(|(_, is_there)| *is_there) {
        report.error(
            routing.span(),
            Problem::new(
                format!("routing = \"owner\" does not go with {what}"),
                format!("remove routing, or {what}"),
            ),
        );
    }
}
