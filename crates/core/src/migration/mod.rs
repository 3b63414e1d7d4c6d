//! Planned migration: the TCB entries of a connection server go over to another one while traffic runs, and then
//! the cluster address moves.
//!
//! ```text
//!  CS   Sender:    open > pass 1: all entries > pass 2: what changed > … > hold > pass > transfer > pass
//!  CS*  Receiver:         <---------- batches acknowledged (TAKEN) ------------------------------------
//! ```
//!
//! Every batch is sent until it is acknowledged ([`Flight`](flight)), and a pass begins only when all of the one
//! before have been acknowledged. So what comes later is never older. A batch that comes twice is taken once.
//! When little is left to be sent, first requests wait (`bpf/connection_server/begin/hold.h`) while the rest
//! goes over, so that the new connection server has an entry of each connection. Then all that clients send goes
//! on to it, and the address moves. What changed in other ways until then goes over after the address.
//!
//! # Why an old entry is harmless
//!
//! Nothing depends on an entry being there, or being new. An entry says who the owner is. A data server that
//! does not have the connection sends the packet on if it handed the connection over to another one; otherwise
//! it answers NONE, and then all data servers are asked (CLAIM). The same happens without an entry. The rest of
//! an entry is bookkeeping that the next packet corrects: the highest numbers seen, and the age.

mod book;
mod flight;
mod merge;
mod passes;
mod receiver;
mod sender;

pub use book::{Book, Server};
pub use merge::merge;
pub use receiver::{Happened, Receiver};
pub use sender::{Failure, Progress, Report, Sender, Stage, Step};

use std::time::Duration;

/// How long the sender waits for the receiver.
pub const PATIENCE: Duration = Duration::from_secs(3);
