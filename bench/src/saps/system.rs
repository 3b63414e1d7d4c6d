//! The systems that are compared: the two of bench/saps/lab.toml, each with two kinds of sender.

use anyhow::Result;

pub(super) const SERVERS: [&str; 4] = ["server1", "server2", "server3", "server4"];
pub(super) const APPLICATION_NODES: [&str; 4] = ["app1", "app2", "app3", "app4"];
/// The system whose hosts run TCP with the clients, and so see congestion at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// SAPS: only io1 runs TCP with clients.
    Saps,
    /// The Virtual Server: each of four servers runs TCP with its own clients.
    VirtualServer,
}

/// The congestion control of the hosts that send to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Cubic,
    Bbr,
}

/// The turns of a round: each system with each congestion control, in this order.
pub(super) const TURNS: [(Sender, System); 4] = [
    (Sender::Cubic, System::Saps),
    (Sender::Cubic, System::VirtualServer),
    (Sender::Bbr, System::Saps),
    (Sender::Bbr, System::VirtualServer),
];

/// One value for each turn, in the order of [`TURNS`].
pub(super) type Round<T> = [T; TURNS.len()];

/// Calls a function for each turn.
pub(super) fn turns<T>(mut what: impl FnMut((Sender, System)) -> Result<T>) -> Result<Round<T>> {
    let [a, b, c, d] = TURNS;
    Ok([what(a)?, what(b)?, what(c)?, what(d)?])
}

impl System {
    pub const ALL: [System; 2] = [System::Saps, System::VirtualServer];

    pub fn name(self) -> &'static str {
        match self {
            System::Saps => "SAPS",
            System::VirtualServer => "Virtual Server",
        }
    }

    /// The address that clients know.
    pub fn address(self) -> &'static str {
        match self {
            System::Saps => "10.79.0.101",
            System::VirtualServer => "10.79.0.100",
        }
    }

    /// The hosts that run TCP with clients.
    pub fn senders(self) -> &'static [&'static str] {
        match self {
            System::Saps => &["io1"],
            System::VirtualServer => &SERVERS,
        }
    }

    /// The interface of these hosts towards the front.
    pub fn link(self) -> &'static str {
        match self {
            System::Saps => "eth1",
            System::VirtualServer => "eth0",
        }
    }

    /// The hosts that run nginx.
    pub fn web_servers(self) -> &'static [&'static str] {
        match self {
            System::Saps => &APPLICATION_NODES,
            System::VirtualServer => &SERVERS,
        }
    }
}

impl Sender {
    pub const ALL: [Sender; 2] = [Sender::Cubic, Sender::Bbr];

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Sender::Cubic => "cubic",
            Sender::Bbr => "bbr",
        }
    }
}
