//! Checks that a service with `head_timeout` has an agent that reads its requests: only the agent applies it.

use crate::reading::field::Parsed;
use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::{self, Handover, Split};

/// Reports a `head_timeout` that could have no effect.
pub(super) fn check(report: &mut Report<'_>, service: &service::Draft) {
    let Parsed::Right(head_timeout) = &service.head_timeout else {
        return;
    };
    let is_tls = service.protocol == Some(ClientProtocol::Tls);
    let refuses = matches!(&service.unknown_name, Parsed::Right(what) if *what.get_ref() == UnknownName::Refuse);
    let is_left_to_server = (is_tls || service.handover == Some(Handover::Never))
        && service.routes.is_empty()
        && !refuses
        && matches!(service.large, Parsed::Absent)
        && matches!(service.dispatcher, Parsed::Absent);
    let why = if service.split == Some(Split::Ack) {
        "with split = \"ack\""
    } else if is_left_to_server && is_tls {
        "with protocol = \"tls\" and no routes"
    } else if is_left_to_server {
        "with handover = \"never\" and no routes"
    } else {
        return;
    };
    report.error(
        head_timeout.span(),
        Problem::new(
            format!(
                "{why} no data server's node reads heads, so only the server can limit how long one takes"
            ),
            "remove head_timeout, and set the server's own limit",
        ),
    );
}
