//! The packet path's user-space edge: loads, pins and attaches the BPF programs of `bpf/`, and shows
//! their maps as typed values. All `unsafe` of this part of baton lives in [`sys`].
//!
//! Pinned maps and links outlive the process: when the daemon is killed or upgraded, packets keep
//! flowing, and the next [`Dataplane::load`] takes the same maps and replaces the programs in place.

/// What was generated of a BPF object: not ours to polish.
macro_rules! skeleton {
    ($name:ident, $file:literal) => {
        #[allow(
            warnings,
            clippy::all,
            clippy::unwrap_used,
            clippy::undocumented_unsafe_blocks,
            missing_docs
        )]
        mod $name {
            include!(concat!(env!("OUT_DIR"), $file));
        }
    };
}

mod again;
mod answers;
mod app;
mod attach;
mod channels;
mod client;
mod clock;
mod dataplane;
mod door_tally;
mod early;
mod entries;
mod eop;
mod error;
mod everywhere;
mod frags;
mod heads;
mod hold;
pub mod kernel;
mod layout;
mod lead;
mod load;
mod maps;
mod moves;
mod orphans;
mod own_pools;
mod peer_keys;
mod pins;
mod reading;
mod refused;
mod relay_answer;
mod responses;
mod ring;
mod routing;
mod stale;
pub mod sys;
mod tally;

skeleton!(skeleton, "/baton.skel.rs");
skeleton!(app_skeleton, "/app.skel.rs");

pub use again::Resumed;
pub use answers::Answers;
pub use app::{
    App, AppEvent, AppEvents, AppListener, AppMaps, AppOptions, AppTaken, app_counter_name,
    app_is_alive,
};
pub use attach::{XdpChoice, XdpMode, control_groups, mounts};
pub use channels::Channels;
pub use client::{ClientOptions, ClientPins, ClientPrograms, Ipv4Network};
pub use clock::{Tick, wall_clock_offset};
pub use dataplane::{Dataplane, Swept, counter_name};
pub use door_tally::AtDoor;
pub use early::{Early, EarlyRing};
pub use entries::Entries;
pub use eop::EopPins;
pub use error::Error;
pub use frags::wants_frags;
pub use heads::{Heads, SeenHead};
pub use hold::Hold;
pub use lead::Lead;
pub use load::{Options, Programs};
pub use moves::{Moving, Step};
pub use orphans::Orphans;
pub use own_pools::OwnPools;
pub use pins::Pins;
pub use reading::Reading;
pub use refused::{Refusals, RefusedNodes};
pub use responses::Responses;
pub use stale::StaleSender;
pub use tally::Tallied;
