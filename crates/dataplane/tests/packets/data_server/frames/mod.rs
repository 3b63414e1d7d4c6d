//! What is around the packets and messages, and what is broken there.

pub mod big;
pub mod lccp_in;
pub mod malformed;
pub mod plain;
pub mod vlan;
