//! Why a data server did not do what it was asked to do.

use baton_abi::{LCCP_REFUSAL_NO_LISTENER, LCCP_REFUSAL_NOT_ASSIGNED, LCCP_REFUSAL_UNREADABLE};

use super::numbered::numbered;

numbered! {
    /// Why a DS did not adopt a connection (`enum lccp_refusal`).
    pub enum Refusal {
        /// Nothing listens on the service's port.
        NoListener = LCCP_REFUSAL_NO_LISTENER,
        /// The kernel would not make a socket from the packet.
        NotAssigned = LCCP_REFUSAL_NOT_ASSIGNED,
        /// The owner has to judge this request, and cannot read it.
        Unreadable = LCCP_REFUSAL_UNREADABLE,
        /// A reason that this version does not know. The CS treats all reasons alike.
        Other = 0,
    }
}
