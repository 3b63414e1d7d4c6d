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
//! is left to be sent, requests wait (`bpf/cs/hold.h`) while the rest goes over: so the new connection server
//! knows of each connection where its next request begins. Then all that clients send goes on there, and the
//! address moves. What changed in other ways until then goes over after it.
//!
//! # Why an old entry is harmless
//!
//! Whatever is lost, nothing depends on an entry being there, or new. What it says is of two sorts.
//!
//! - *Where the next request begins* (`next_request`), which lets a connection move. It was read in the
//!   client's own byte stream, and that never changes: a request that begins there begins there forever. Of
//!   requests that the entry has not seen the next one stands elsewhere, and the connection server pins the
//!   connection to its owner, as it does whenever it is not sure.
//! - *Who has the connection.* Who has it not says so (NONE), with the client's packet, and then the one
//!   before is asked, or all of them are (CLAIM). The same happens without an entry.
//!
//! The rest is bookkeeping: the highest numbers seen follow the next packet, age follows the next one too.
//!
//! One thing would be wrong: a request that only the old connection server has seen comes again, and the new
//! one takes it for the next. The owner decides then, as always; but if it handed the connection over for the
//! first copy, and now another data server is chosen than then, two would answer. That is why requests
//! wait before the last look, and not only to keep connections from being pinned.

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
