//! The data server's tcx program.
//!
//! A test run looks sockets up in the caller's namespace, but the kernel makes none there: a socket
//! can be assigned only to a packet that has come in through an interface, so `bpf_sk_assign_tcp_reqsk`
//! answers -EINVAL. What follows the assignment is tested on a live loopback, in [`live`].

pub mod adopt;
mod agent;
mod door;
pub mod frames;
mod handover;
mod response;
