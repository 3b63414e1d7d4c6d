//! Kernel settings below /proc/sys/net, in the network namespace of the calling thread.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// One setting, named by its path below /proc/sys: `net/ipv4/conf/eth0/arp_ignore`. The path has slashes, because the
/// name of an interface may contain dots.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sysctl(String);

impl Sysctl {
    /// The setting for which target addresses an interface answers ARP. 1: only for those on the interface itself
    /// (Documentation/networking/ip-sysctl.rst). The kernel uses the larger of this and `all`.
    ///
    /// # Errors
    /// [`Error::NotASysctl`] if `interface` cannot be the name of an interface.
    pub fn arp_ignore(interface: &str) -> Result<Self> {
        Self::ipv4_conf(interface, "arp_ignore")
    }

    /// The setting for the sender address in an interface's ARP requests. 2: the best local address for the target,
    /// never one of another interface. The kernel uses the larger of this and `all`.
    ///
    /// # Errors
    /// [`Error::NotASysctl`] if `interface` cannot be the name of an interface.
    pub fn arp_announce(interface: &str) -> Result<Self> {
        Self::ipv4_conf(interface, "arp_announce")
    }

    /// The reverse path filter of an interface: 0 off, 1 strict, 2 loose.
    ///
    /// # Errors
    /// [`Error::NotASysctl`] if `interface` cannot be the name of an interface.
    pub fn rp_filter(interface: &str) -> Result<Self> {
        Self::ipv4_conf(interface, "rp_filter")
    }

    /// The setting whether an accepted connection sends with the mark of the SYN that it came from.
    pub fn tcp_fwmark_accept() -> Self {
        Self("net/ipv4/tcp_fwmark_accept".into())
    }

    /// The setting whether an answer that belongs to no socket, such as a RST, carries the mark of the packet that it
    /// answers.
    pub fn fwmark_reflect() -> Self {
        Self("net/ipv4/fwmark_reflect".into())
    }

    /// The setting whether sockets may use MPTCP.
    pub fn mptcp_enabled() -> Self {
        Self("net/mptcp/enabled".into())
    }

    fn ipv4_conf(interface: &str, key: &str) -> Result<Self> {
        if interface.contains('/') {
            return Err(Error::NotASysctl {
                name: interface.to_owned(),
            });
        }
        Self::try_from(format!("net/ipv4/conf/{interface}/{key}"))
    }

    /// Reads the value, without white space around it.
    ///
    /// # Errors
    /// [`Error::System`] if this kernel does not have it.
    pub fn read(&self) -> Result<String> {
        let read = fs::read_to_string(self.file());
        let value = read.map_err(Error::system(format!("read the setting {self}")))?;
        Ok(value.trim().to_owned())
    }

    /// Writes the value, and returns the value before.
    ///
    /// # Errors
    /// [`Error::System`] if this kernel does not have it or does not take the value.
    pub fn write(&self, value: &str) -> Result<String> {
        let previous = self.read()?;
        if previous != value {
            fs::write(self.file(), value)
                .map_err(Error::system(format!("set {self} to \"{value}\"")))?;
        }
        Ok(previous)
    }

    /// Whether this error of a setting says that the kernel does not have the setting (anymore).
    pub(crate) fn is_gone(error: &Error) -> bool {
        matches!(error, Error::System { cause, .. } if cause.kind() == io::ErrorKind::NotFound)
    }

    fn file(&self) -> PathBuf {
        PathBuf::from("/proc/sys").join(&self.0)
    }
}

impl TryFrom<String> for Sysctl {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        let parts = || name.split('/');
        let legal =
            |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
        if parts().next() == Some("net") && parts().count() > 1 && parts().all(legal) {
            return Ok(Self(name));
        }
        Err(Error::NotASysctl { name })
    }
}

impl From<Sysctl> for String {
    fn from(sysctl: Sysctl) -> Self {
        sysctl.0
    }
}

impl fmt::Display for Sysctl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_the_network() {
        for good in ["net/ipv4/ip_forward", "net/ipv4/conf/eth0.100/arp_ignore"] {
            assert!(Sysctl::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "",
            "net",
            "net/",
            "/net/ipv4/x",
            "kernel/panic",
            "net/../kernel/panic",
            "net//x",
        ] {
            assert!(Sysctl::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert!(Sysctl::arp_ignore("../../../kernel").is_err());
        assert!(Sysctl::arp_ignore("..").is_err());
    }
}
