//! What the kernel says of XDP on an interface: which program is attached, what the driver can do, and why it refuses.

use std::{
    fmt,
    io::stdin,
    os::fd::{AsFd as _, BorrowedFd},
};

use libbpf_rs::{Xdp, XdpFlags, libbpf_sys as raw, query::ProgInfoIter};

use super::messages::{collect_messages, take_messages};

/// How an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel has made a socket buffer of the packet.
    Native,
    /// After the kernel has made a socket buffer, which works if the driver knows no XDP: correct, but slower.
    Generic,
}

/// An XDP program that is attached to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpHolder {
    /// The kernel's number for it.
    pub id: u32,
    /// Its name. The kernel tells it only to a process with CAP_SYS_ADMIN.
    pub name: Option<String>,
}

impl fmt::Display for XdpHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "the program {name} ({})", self.id),
            None => write!(
                f,
                "a program whose name only root can see (`bpftool prog show id {}`)",
                self.id
            ),
        }
    }
}

/// What the kernel says of XDP on an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpState {
    /// What the driver can do, as bits of `enum netdev_xdp_act` of include/uapi/linux/netdev.h.
    pub features: u64,
    /// The program that is attached, if there is one.
    pub holder: Option<XdpHolder>,
    /// How that program runs.
    pub mode: Option<XdpMode>,
}

impl XdpState {
    /// Asks the kernel about the interface with this index.
    ///
    /// # Errors
    /// What the kernel says, for example if there is no such interface.
    pub fn of(interface: u32) -> libbpf_rs::Result<Self> {
        // A query does not use the descriptor, which would be that of a program to attach.
        let stdin = stdin();
        let answer = Xdp::new(stdin.as_fd()).query(index(interface), XdpFlags::NONE)?;
        let ids = [
            answer.prog_id,
            answer.drv_prog_id,
            answer.skb_prog_id,
            answer.hw_prog_id,
        ];
        let id = ids.into_iter().find(|id| *id != 0);
        let mode = match answer.attach_mode.into() {
            raw::XDP_ATTACHED_SKB => Some(XdpMode::Generic),
            raw::XDP_ATTACHED_NONE => None,
            _ => Some(XdpMode::Native),
        };
        Ok(Self {
            features: answer.feature_flags,
            holder: id.map(|id| XdpHolder {
                id,
                name: program_name(id),
            }),
            mode,
        })
    }
}

fn program_name(id: u32) -> Option<String> {
    let program = ProgInfoIter::default().find(|program| program.id == id)?;
    Some(program.name.to_string_lossy().into_owned())
}

/// Why the driver refuses this program. A link is refused with a number only; over netlink the driver gives its
/// reason in words, so it is asked once more in that way. Nothing stays attached.
pub(crate) fn native_refusal(program: BorrowedFd<'_>, interface: u32) -> Option<String> {
    collect_messages();
    let xdp = Xdp::new(program);
    let attached = xdp.attach(
        index(interface),
        XdpFlags::DRV_MODE | XdpFlags::UPDATE_IF_NOEXIST,
    );
    if attached.is_ok() {
        // It did not refuse this time; the answer that counts is the first.
        let _ = xdp.detach(index(interface), XdpFlags::DRV_MODE);
    }
    driver_words(&take_messages())
}

/// The driver's words from libbpf's log: "libbpf: Kernel error message: WORDS".
fn driver_words(log: &str) -> Option<String> {
    let said = log
        .lines()
        .find_map(|line| line.split_once("Kernel error message: "));
    said.map(|(_, words)| words.trim().to_owned())
        .filter(|words| !words.is_empty())
}

fn index(interface: u32) -> i32 {
    // The kernel's own numbers are of this type.
    i32::try_from(interface).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_words() {
        let log = "libbpf: something\nlibbpf: Kernel error message: virtio_net: MTU too large\n";
        assert_eq!(
            driver_words(log).as_deref(),
            Some("virtio_net: MTU too large")
        );
        assert_eq!(driver_words("libbpf: something\n"), None);
    }
}
