//! Clients that send to their data server themselves are out of a connection server's sight: where that follows requests, nobody
//! could lead theirs elsewhere.

use crate::field::Parsed;
use crate::problem::Problem;
use crate::report::Report;
use crate::service::{self, Misrouted, Routing};

/// Reports `direct` where each request must be answered by the pool of its route.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    let Parsed::Right(direct) = &service.direct else {
        return;
    };
    let has_pools = !service.routes.is_empty() || !matches!(service.large, Parsed::Absent);
    let is_owners =
        matches!(&service.routing, Parsed::Right(routing) if *routing.get_ref() == Routing::Owner);
    if *direct.get_ref() && has_pools && !is_owners && service.misrouted == Some(Misrouted::Close) {
        report.error(
            direct.span(),
            Problem::new(
                "with direct, further requests on a connection stay with its data server, whatever the routes say",
                "add routing = \"owner\", or misrouted = \"stay\" if any data server may answer any request, or remove direct",
            ),
        );
    }
}
