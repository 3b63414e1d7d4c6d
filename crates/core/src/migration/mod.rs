//! Planned migration: the TCB entries of a connection server go over to another one while traffic runs,
//! and then the cluster address does.
//!
//! ```text
//!  CS   Sender:    open > pass 1: all entries > pass 2: what changed > … > hold > pass > transfer > pass
//!  CS*  Receiver:         <---------- batches acknowledged (TAKEN) ------------------------------------
//! ```
//!
//! Every batch is sent until it is acknowledged ([`Flight`](flight)), and a pass begins when all of the one
//! before has been: so what comes later is never older. A batch that comes twice is taken once. When little
//! is left to be sent, first requests wait (`bpf/connection_server/begin/hold.h`) while the rest goes over, so that the new connection
//! server has an entry of each connection. Then all that clients send goes on there, and the
//! address moves. What changed in other ways until then goes over after it.
//!
//! # Why an old entry is harmless
//!
//! Nothing depends on an entry being there, or new. It says who has the connection: who has it not sends the packet on, if it
//! gave the connection to another one, or says so (NONE), and then all are asked (CLAIM). The same happens without an entry.
//! The rest is bookkeeping: the highest numbers seen follow the next packet, age follows the next one too.

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

/// So long either end waits for the other.
pub const PATIENCE: Duration = Duration::from_secs(3);
