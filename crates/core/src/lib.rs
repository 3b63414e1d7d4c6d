//! What a node decides, as state machines without I/O.
//!
//! Nothing here reads a clock, opens a socket or spawns a task: `now` is an argument, inputs come
//! by `handle_*`, what is to be done comes out of `poll`, and `next_timeout` says when to call it
//! again. So every decision can be tested in virtual time.
//!
//! From a HELLO to the choices that the CS program walks:
//!
//! ```text
//!  local server --health, load--> HELLO --> membership --usable--> slots --> policy --> choices map
//!                 (on the DS)                (on the CS)                    turn | maglev
//! ```
//!
//! Which pool of servers a request goes to is decided before that by its content: by `routes`, and by `rules`
//! where the program cannot decide. Where another node dispatches, the choices are at its `desk`, and the node
//! that asks it has an `asker`.
//!
//! The other half of the project, an I/O server and its application nodes, is in `crates/saps`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod error;
mod moment;

pub mod asker;
pub mod channel;
pub mod desk;
pub mod early;
pub mod errand;
pub mod failover;
pub mod health;
pub mod listening;
pub mod maglev;
pub mod membership;
pub mod migration;
pub mod moves;
pub mod orders;
pub mod policy;
pub mod pulse;
pub mod repeats;
pub mod resume;
pub mod routes;
pub mod rules;
pub mod shares;
pub mod sizes;
pub mod slots;
pub mod tallies;
pub mod turn;

pub use error::Error;
pub use moment::Moment;
