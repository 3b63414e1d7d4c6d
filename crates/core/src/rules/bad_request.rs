//! Why servers do not answer a request.

use baton_wire::BadPath;

/// Why a request is none that servers answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// The first word of the request is no method.
    #[error("it does not begin with a method")]
    Method,
    /// The target is neither a path nor an absolute form nor `*`.
    #[error("its target has no form that servers accept")]
    Target,
    /// The path of the target is bad.
    #[error("the path of its target: {0}")]
    Path(#[from] BadPath),
    /// What follows the target is no version of HTTP.
    #[error("its first line does not end with a version of HTTP")]
    Version,
    /// A line is no header line: it is folded, or has blanks or control characters in its name.
    #[error("it has a line that is not a valid header line")]
    Line,
    /// The request names a host that is not valid.
    #[error("the host that it names is not valid")]
    Host,
    /// The request has several `Host` lines.
    #[error("it has several Host lines")]
    Hosts,
}
