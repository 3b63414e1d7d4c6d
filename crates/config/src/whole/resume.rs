//! Checks that `resume` can work: it needs to know which request a response answers.

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::service::{self, Handover, Split};

/// Reports a `resume` of the service or of one of its routes that could have no effect.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    let of_routes = service.routes.iter().map(|route| &route.resume);
    for resume in [&service.resume].into_iter().chain(of_routes) {
        let Parsed::Right(resume) = resume else {
            continue;
        };
        if !resume.get_ref() {
            continue;
        }
        if service.split == Some(Split::Ack) {
            report.error(
                resume.span(),
                Problem::new(
                    "resume asks another data server the same request, and with split = \"ack\" no \
                     data server reads requests",
                    "remove split, or resume",
                ),
            );
        } else if service.handover == Some(Handover::Never) {
            report.error(
                resume.span(),
                Problem::new(
                    "resume asks another data server the same request, and with handover = \"never\" a \
                     connection stays with its data server",
                    "remove handover, or resume",
                ),
            );
        }
    }
}
