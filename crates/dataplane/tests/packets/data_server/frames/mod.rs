//! How the program reads frames and their headers: plain packets, LCCP, VLANs, BIG TCP, and malformed ones.

pub mod big;
pub mod lccp_in;
pub mod malformed;
pub mod plain;
pub mod vlan;
