//! YIELD's answer: where a connection is whose response was to go on at another data server.

use baton_abi::{LCCP_YIELD_GONE, LCCP_YIELD_KEPT, LCCP_YIELD_REFUSED};

use super::numbered::numbered;

numbered! {
    /// What the owner says once the outcome is decided (`enum lccp_yield`).
    pub enum YieldAnswer {
        /// The connection is not here (anymore).
        Gone = LCCP_YIELD_GONE,
        /// The connection is here and stays, as was ordered.
        Kept = LCCP_YIELD_KEPT,
        /// The connection is here and cannot leave.
        Refused = LCCP_YIELD_REFUSED,
    }
}
