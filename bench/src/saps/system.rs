//! What is compared: two systems, as bench/saps/lab.toml has them, each with two kinds of sender.

pub(super) const SERVERS: [&str; 4] = ["server1", "server2", "server3", "server4"];
pub(super) const APPLICATION_NODES: [&str; 4] = ["app1", "app2", "app3", "app4"];
/// Who has the TCP with clients, and so congestion at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// io1.
    Saps,
    /// Four servers, each its own.
    VirtualServer,
}

/// The congestion control of who sends to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    Cubic,
    Bbr,
}

impl System {
    pub const ALL: [System; 2] = [System::Saps, System::VirtualServer];

    pub fn name(self) -> &'static str {
        match self {
            System::Saps => "SAPS",
            System::VirtualServer => "Virtual Server",
        }
    }

    /// What clients know.
    pub fn address(self) -> &'static str {
        match self {
            System::Saps => "10.79.0.101",
            System::VirtualServer => "10.79.0.100",
        }
    }

    /// Hosts that have TCP with clients.
    pub fn senders(self) -> &'static [&'static str] {
        match self {
            System::Saps => &["io1"],
            System::VirtualServer => &SERVERS,
        }
    }

    /// Their interface to the front.
    pub fn link(self) -> &'static str {
        match self {
            System::Saps => "eth1",
            System::VirtualServer => "eth0",
        }
    }

    /// Hosts with nginx.
    pub fn web_servers(self) -> &'static [&'static str] {
        match self {
            System::Saps => &APPLICATION_NODES,
            System::VirtualServer => &SERVERS,
        }
    }
}

impl Sender {
    pub const ALL: [Sender; 2] = [Sender::Cubic, Sender::Bbr];

    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Sender::Cubic => "cubic",
            Sender::Bbr => "bbr",
        }
    }
}
