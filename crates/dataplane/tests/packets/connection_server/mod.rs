//! The connection server's XDP program.

mod begin;
mod find;
mod forward;
pub mod frames;
pub mod http;
mod lccp_in;
mod orphans;
pub mod routing;

mod sweep;
mod upload;
