//! Clients that send to their data server themselves are out of sight: nobody could lead their requests elsewhere.

use crate::field::Parsed;
use crate::problem::Problem;
use crate::report::Report;
use crate::service::{self, Misrouted};

/// Reports `direct` where each request must be answered by the pool of its route.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    let Parsed::Right(direct) = &service.direct else {
        return;
    };
    let has_pools = !service.routes.is_empty() || !matches!(service.large, Parsed::Absent);
    if *direct.get_ref() && has_pools && service.misrouted == Some(Misrouted::Close) {
        report.error(
            direct.span(),
            Problem::new(
                "with direct, further requests on a connection stay with its data server, whatever the routes say",
                "add misrouted = \"stay\" if any data server may answer any request, or remove direct",
            ),
        );
    }
}
