//! LCCP, the light-weight cluster control protocol: every message between nodes.
//!
//! A message is one small packet over raw IP: a fixed header ([`baton_abi::LccpHeader`]) under a
//! SipHash-2-4 [`tag()`], then either a body under the same tag or the client's own packet. This
//! crate turns messages into bytes and back. It does no I/O and reads no clock: the time is an
//! argument.
//!
//! ```text
//!  outer IP | header 72 | tag 8 | body (daemons)
//!  outer IP | header 72 | tag 8 | the client's IP packet
//! ```
//!
//! The [`tag()`] binds the message to the two nodes of its [`NodePair`], and to its body or to those fields of the
//! client's packet that TCP acts on: length, numbers, flags, window and urgent pointer. So a message that was seen on
//! its way cannot be put around another packet. [`decode()`] checks that the packet belongs to the flow that the header
//! names. The tag covers neither TCP options nor the TCP checksum, which may still be pending where the message is
//! made. The payload is trusted as little as on any server: nothing vouches for it before it reaches the cluster
//! either.
//!
//! What a channel between an I/O server and an application node carries is defined in `crates/saps/protocol/src/wire`;
//! the messages of redirectable sockets are in `crates/eop/protocol/src/wire`.
//!
//! The C programs speak the same format as LCCP here; `vectors/lccp.txt` holds the bytes both must produce.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod address;
mod carried;
mod clock;
mod decode;
mod encode;
mod error;
mod flow;
mod keys;
mod messages;
mod path;
mod reject;
mod short;

pub use crate::keys::hash_key::HashKey;
pub use crate::keys::key::{ClusterKey, CookieKey, ForwardingKey, Keys};
pub use crate::keys::pair::KeyRing;
pub use crate::keys::tag::{LccpKey, NodePair, siphash24, tag};
pub use crate::messages::account::Account;
pub use crate::messages::candidate::{Candidate, CandidateState};
pub use crate::messages::head::{AnsweredRequest, Head, HeadDigest, Heads};
pub use crate::messages::hello::{Health, Hello, HelloService, Permille};
pub use crate::messages::message::{Message, Receptor};
pub use crate::messages::numbers::Numbers;
pub use crate::messages::order::{Order, Verb};
pub use crate::messages::question::{Query, Reply};
pub use crate::messages::reason::Refusal;
pub use crate::messages::resume::{Outcome, Progress, Ready, Resume};
pub use crate::messages::sizes::{LargePaths, PathHash};
pub use crate::messages::taken::{LeftOut, Taken, TakenRefusal};
pub use crate::messages::tallies::{Counts, Tallies};
pub use crate::messages::tcb::{TcbPart, WindowScale, WindowScales};
pub use crate::messages::tcb_entry::{EntryKey, TcbEntry};
pub use crate::messages::tcbs::{BatchFlags, Tcbs};
pub use crate::messages::yielding::YieldAnswer;
pub use address::{Address, Endpoint};
pub use clock::{Arrival, Clock, Incarnation};
pub use decode::{Received, clock_of, decode, version_of};
pub use encode::encode;
pub use error::Error;
pub use flow::Flow;
pub use path::{BadPath, Path};
pub use reject::Reject;
pub use short::ShortAddress;
