//! What can go wrong between the daemon and the host.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why something could not be done. Each text says what failed, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error("cannot {doing}: {cause}{}", remedy(cause))]
    System {
        /// What was tried, as it follows "cannot".
        doing: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// No interface has this name.
    #[error(
        "there is no interface \"{name}\" (there are: {existing})\n  \
         help: correct `interface` in the configuration, or bring the NIC up"
    )]
    NoLink {
        /// The name that was looked for.
        name: String,
        /// The names that exist, separated by commas.
        existing: String,
    },
    /// No interface holds this address.
    #[error(
        "no interface holds the address {address} (there are: {existing})\n  \
         help: correct the node's `address` in the configuration, or add it to an interface"
    )]
    NoLinkHolds {
        /// The address that was looked for.
        address: IpAddr,
        /// The addresses that exist, with their interfaces.
        existing: String,
    },
    /// The interface has no MAC address.
    #[error(
        "the interface \"{name}\" has no Ethernet address\n  \
         help: nodes reach each other over Ethernet; name another interface"
    )]
    NotEthernet {
        /// The interface.
        name: String,
    },
    /// The next hop did not answer ARP or neighbor discovery.
    #[error(
        "{address} on {interface} did not answer with its MAC address within {waited:?}\n  \
         help: check that the machine is up and on the same LAN (ping it, `ip neighbor`)"
    )]
    Unresolved {
        /// The address of the next hop.
        address: IpAddr,
        /// The interface behind which it should be.
        interface: String,
        /// How long it was asked for.
        waited: Duration,
    },
    /// The journal is malformed.
    #[error(
        "the journal {} of changes to this host cannot be read: {reason}\n  \
         help: take back what it lists by hand, then remove it", path.display()
    )]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A packet that is no IPv4 packet of the socket's protocol came out of a raw socket.
    #[error(
        "a packet from a raw socket is malformed: {0}\n  help: this is a bug or a broken driver"
    )]
    Malformed(&'static str),
    /// The name is not a setting of the network.
    #[error(
        "\"{name}\" is not a network setting\n  help: write something like net/ipv4/ip_forward"
    )]
    NotASysctl {
        /// The name that was given.
        name: String,
    },
}

impl Error {
    /// Makes [`Error::System`], for use in `map_err`. `doing` is what was tried, as it follows "cannot".
    pub fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |cause| Self::System { doing, cause }
    }

    /// Whether there was no room for a packet to be sent: in the socket's buffer (EAGAIN) or in the interface's queue
    /// (ENOBUFS). There will be room in a moment.
    pub(crate) fn is_full_queue(&self) -> bool {
        matches!(self.errno(), Some(libc::EAGAIN | libc::ENOBUFS))
    }

    /// The kernel's error number, if it was the kernel that refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { cause, .. } => cause.raw_os_error(),
            _ => None,
        }
    }
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "\n  help: run as root, or with CAP_NET_ADMIN and CAP_NET_RAW"
        }
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            "\n  help: there is no route; see `ip route get` for this address"
        }
        Some(libc::EADDRNOTAVAIL) => "\n  help: the address is not on this host; see `ip address`",
        Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT | libc::EOPNOTSUPP) => {
            "\n  help: this kernel was built without it; see `baton doctor`"
        }
        _ => "",
    }
}
