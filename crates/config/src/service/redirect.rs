//! `redirect`: where the clients of a service without servers of its own are sent.

use crate::values::words::words;

words! {
    /// Where clients are sent.
    pub(crate) enum Redirect "redirect" {
        /// To HTTPS, at the same address.
        Https = "https",
    }
}
