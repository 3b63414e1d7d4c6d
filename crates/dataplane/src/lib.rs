//! The user-space side of the packet path: loads, pins and attaches the BPF programs of `bpf/`, and shows their maps
//! as typed values. All `unsafe` code of this part of baton is in [`sys`].
//!
//! Pinned maps and links outlive the process: when the daemon is killed or upgraded, packets keep
//! flowing, and the next [`Dataplane::load`] takes the same maps and replaces the programs in place.

/// Includes the code that was generated from a BPF object. Lints do not apply to it.
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

mod aware_client;
mod clock;
mod connection_server;
mod data_server;
mod dataplane;
mod eop;
mod error;
pub mod kernel;
mod loading;
mod maps;
mod peers;
mod ring;
mod routing;
mod switch;
pub mod sys;
mod virtual_sockets;

pub use crate::aware_client::{ClientOptions, ClientPins, ClientPrograms, Ipv4Network};
pub use crate::connection_server::again::Resumed;
pub use crate::connection_server::entries::Entries;
pub use crate::connection_server::hold::Hold;
pub use crate::connection_server::moves::{Moving, Step};
pub use crate::connection_server::orphans::Orphans;
pub use crate::connection_server::{ConnectionServer, Swept};
pub use crate::data_server::DataServer;
pub use crate::data_server::answers::Answers;
pub use crate::data_server::door_tally::AtDoor;
pub use crate::data_server::early::{Early, EarlyRing};
pub use crate::data_server::heads::{Heads, SeenHead};
pub use crate::data_server::own_pools::OwnPools;
pub use crate::data_server::reading::Reading;
pub use crate::data_server::responses::Responses;
pub use crate::kernel::XdpMode;
pub use crate::loading::attach::{XdpChoice, control_groups, mounts};
pub use crate::loading::frags::wants_frags;
pub use crate::loading::load::{Options, Programs};
pub use crate::loading::pins::Pins;
pub use crate::peers::channels::Channels;
pub use crate::peers::refused::{Refusals, RefusedNodes};
pub use crate::peers::stale::StaleSender;
pub use crate::routing::{Routing, lead::Lead, tally::Tallied};
pub use crate::switch::Switch;
pub use crate::virtual_sockets::{
    App, AppCall, AppEvent, AppEvents, AppListener, AppMaps, AppOptions, AppTaken,
    app_counter_name, app_is_alive,
};
pub use clock::{Tick, wall_clock_offset};
pub use dataplane::{Dataplane, counter_name};
pub use eop::EopPins;
pub use error::Error;
