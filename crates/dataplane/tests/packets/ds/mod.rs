//! The data server's tcx program.
//!
//! A test run looks sockets up in the caller's namespace, but the kernel makes none there: a socket
//! can be assigned only to a packet that has come in through an interface, so `bpf_sk_assign_tcp_reqsk`
//! answers -EINVAL. What follows the assignment is tested on a live loopback, in [`live`].

mod adopt;
mod behind;
mod big;
mod body;
mod claim;
mod direct;
mod dispatcher;
mod early;
mod fence;
mod head;
mod keep_request;
mod kept;
mod lccp_in;
mod leave;
mod live;
pub mod loopback;
mod malformed;
mod merged;
mod none;
mod owner;
mod owner_ends;
mod plain;
mod pools;
mod ports;
mod reader;
mod relay_answer;
mod requests;
mod responses;
mod resume;
mod tally;
mod vlan;
mod window;
mod yields;
