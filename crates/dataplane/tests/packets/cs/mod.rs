//! The connection server's XDP program.

mod bad_syn;
mod choice;
mod cookie;
mod first_request;
mod forward;
pub mod icmp;
mod layouts;
mod lccp_in;
mod malformed;
mod not_ours;
mod refused;
mod reuse;
mod stray;
mod sweep;
mod syn;
mod truncated;
