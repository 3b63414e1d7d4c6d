//! What only a connection server's daemon does: who of the candidates is in front, entries that move to another
//! connection server, and connections whose data server drains or has died.

pub mod failover;
pub mod idle_handover;
pub mod mid_response_handover;
pub mod migration;
pub mod segments;
