//! `resume` needs to know which request a response answers.

use crate::field::Parsed;
use crate::problem::Problem;
use crate::report::Report;
use crate::service::{self, Handover, Split};

/// Reports where it could have no effect.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    let Parsed::Right(resume) = &service.resume else {
        return;
    };
    if !resume.get_ref() {
        return;
    }
    if service.split == Some(Split::Ack) {
        report.error(
            resume.span(),
            Problem::new(
                "resume asks another data server the same request, and with split = \"ack\" no \
                 connection server reads requests",
                "remove split, or resume",
            ),
        );
    } else if service.handover == Some(Handover::Never) {
        report.error(
            resume.span(),
            Problem::new(
                "resume asks another data server the same request, and with handover = \"never\" no \
                 connection server follows the requests of a connection",
                "remove handover, or resume",
            ),
        );
    }
}
