//! A certificate that a data server's agent shows clients.

use serde::{Deserialize, Serialize};

/// A certificate that clients are shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Certificate {
    /// The name of the service.
    pub service: String,
    /// The file.
    pub file: String,
    /// The first name that the certificate is for; empty if it is for none.
    pub name: String,
    /// When it expires, in seconds since 1970.
    pub not_after: u64,
}
