//! The direction of packets on a link.

use serde::Deserialize;

/// The direction of packets, as seen from the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Packets from the host and to it
    #[default]
    Both,
    /// Packets that the host sends
    From,
    /// Packets that the host receives
    To,
}

impl Direction {
    /// Whether packets that go this way, from the host or to it, are meant.
    pub(super) fn has(self, way: Direction) -> bool {
        self == Direction::Both || self == way
    }
}
