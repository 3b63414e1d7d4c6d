//! The packet path's user-space edge: loads, pins and attaches the BPF programs of `bpf/`, and shows
//! their maps as typed values. All `unsafe` of this part of baton lives in [`sys`].
//!
//! Pinned maps and links outlive the process: when the daemon is killed or upgraded, packets keep
//! flowing, and the next [`Dataplane::load`] takes the same maps and replaces the programs in place.

mod attach;
mod channels;
mod clock;
mod dataplane;
mod error;
mod load;
mod maps;
mod pins;
mod punts;
mod routing;
mod stale;
pub mod sys;
mod tally;

#[allow(
    warnings,
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/baton.skel.rs"));
}

pub use attach::{XdpMode, control_groups, mounts};
pub use channels::Channels;
pub use clock::{Tick, wall_clock_offset};
pub use dataplane::{Dataplane, Swept, counter_name};
pub use error::Error;
pub use load::{Options, Programs};
pub use pins::Pins;
pub use punts::{Lead, Punt, Punts, Resumed};
pub use stale::StaleSender;
pub use tally::Tallied;
