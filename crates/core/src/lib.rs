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
//!                 (on the DS)                (on the CS)                    weighted_round_robin | maglev
//! ```
//!
//! Which pool of servers a request goes to is decided before that by its content: by `routes`, and by `rules`
//! where the program cannot decide. `dispatcher` has both ends of a dispatcher on another node.
//!
//! The other half of the project, an I/O server and its application nodes, is in `crates/saps`.

#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod error;
mod moment;

pub mod channel;
pub mod counters;
pub mod dispatcher;
pub mod early;

pub mod failover;
pub mod health;
pub mod listening;
pub mod liveness;
pub mod locked;
pub mod maglev;
pub mod membership;
pub mod mid_response_handover;
pub mod migration;
pub mod operator_order;
pub mod policy;
pub mod resume;
pub mod routes;
pub mod rules;
pub mod sizes;
pub mod slots;
pub mod tallies;
pub mod weighted_round_robin;

pub use error::Error;
pub use moment::Moment;
