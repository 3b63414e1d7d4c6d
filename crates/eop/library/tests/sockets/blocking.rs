//! The tests with the blocking sockets.

use eop::{Listener, Session, connect};

#[path = "both/fleet.rs"]
mod fleet;
#[path = "both/mixed.rs"]
mod mixed;
#[path = "both/rules.rs"]
mod rules;
#[path = "both/stream.rs"]
mod stream;
