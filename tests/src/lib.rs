//! The driver of the lab scenarios.
//!
//! A scenario is data: a file in `scenarios/` that names a lab, says in a sentence what it shows, and
//! lists steps. Steps are a small vocabulary ([`step::Step`]), each a file in `src/step`. One driver
//! raises the lab under a name of its own, takes the steps in order, and takes the lab down, also
//! after a failure.
//!
//! ```toml
//! shows = "what the scenario proves, in a sentence"
//! lab = "split.toml"                # a file in labs/
//! needs = ["curl"]                  # programs; without one of them the scenario is skipped
//! # Merged into the lab file; lists go by `name`, and `{tests}` is this directory.
//! change.config.service.web.policy = "weighted"
//!
//! [[step]]
//! do = "get"
//! paths = ["/4k"]
//! long.times = 1000                 # merged into the step when BATON_TEST_LONG is set
//! ```
//!
//! Every scenario also proves, whatever it is about, that no data server sends a RST for a connection
//! it does not own ([`guard`]), and that no response passes a connection server.

pub mod change;
pub mod frames;
pub mod guard;
pub mod machine;
pub mod run;
pub mod runner;
pub mod scenario;
pub mod slowness;
pub mod span;
pub mod step;
mod wait;
pub mod world;

pub use run::{run, why_not};
pub use scenario::Scenario;
