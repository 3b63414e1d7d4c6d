//! Checks that a service with `head_timeout` has an agent that reads its requests: only the agent applies it.

use crate::reading::report::Report;
use crate::service::keys::Keys;
use crate::service::protocol::{ClientProtocol, UnknownName};
use crate::service::terminate::TlsMode;
use crate::service::{Handover, Split};

/// Reports a `head_timeout` that could have no effect.
pub(super) fn check(report: &mut Report<'_>, service: &Keys) {
    let Some(head_timeout) = service.head_timeout.given() else {
        return;
    };
    let is_tls = service.protocol.get() == Some(&ClientProtocol::Tls);
    let is_answered_by_agent =
        service.tls.get() == Some(&TlsMode::Terminate) || service.redirect.get().is_some();
    let is_left_to_server = (is_tls || service.handover.get() == Some(&Handover::Never))
        && service.route.items().is_empty()
        && service.unknown_name.get() != Some(&UnknownName::Refuse)
        && service.large.is_absent()
        && service.dispatcher.is_absent()
        && !is_answered_by_agent;
    let why = if service.split.get() == Some(&Split::Ack) {
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
        format!("{why} no data server's node reads heads, so only the server can limit how long one takes"),
        "remove head_timeout, and set the server's own limit",
    );
}
