//! The connection server's XDP program.

mod bad_syn;
mod choice;
mod cookie;
mod fate;
mod first_request;
mod forward;
mod handover;
pub mod http;
pub mod icmp;
mod layouts;
mod lccp_in;
mod malformed;
mod not_ours;
mod owner;
mod path_hash;
mod pipelining;
mod refused;
mod request;
mod request_bytes;
mod returned;
mod reuse;
mod route;
mod stray;
mod sweep;
mod syn;
mod truncated;
mod unavailable;
