//! Links: attached once, pinned, and from then on only ever updated.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
};

use crate::{
    Error, Pins,
    sys::{self, Hook},
};

/// How an XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver, before the kernel has made anything of the packet.
    Native,
    /// After it, where the driver knows no XDP: correct, but slower.
    Generic,
}

/// `include/uapi/linux/if_link.h`
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// A link and whether it is the one an earlier process left.
pub(crate) struct Attached {
    pub link: OwnedFd,
    pub taken_over: bool,
}

/// Attaches an XDP program, native if the driver can.
pub(crate) fn attach_xdp(
    name: &'static str,
    program: &OwnedFd,
    interface: u32,
    pins: Option<&Pins>,
) -> Result<(Attached, XdpMode), Error> {
    let attempt = |flags| attach(name, program, interface, Hook::Xdp { flags }, pins);
    match attempt(XDP_FLAGS_DRV_MODE) {
        Ok(attached) => Ok((attached, XdpMode::Native)),
        Err(Error::Attach { source, .. }) if source.raw_os_error() != Some(nix::libc::EBUSY) => {
            attempt(XDP_FLAGS_SKB_MODE).map(|attached| (attached, XdpMode::Generic))
        }
        Err(error) => Err(error),
    }
}

/// Attaches an XDP program in generic mode, whatever the driver can.
pub(crate) fn attach_xdp_generic(
    name: &'static str,
    program: &OwnedFd,
    interface: u32,
    pins: Option<&Pins>,
) -> Result<Attached, Error> {
    let flags = XDP_FLAGS_SKB_MODE;
    attach(name, program, interface, Hook::Xdp { flags }, pins)
}

/// Attaches the data server's program.
pub(crate) fn attach_ds(
    program: &OwnedFd,
    interface: u32,
    pins: Option<&Pins>,
) -> Result<Attached, Error> {
    attach("ds", program, interface, Hook::TcxIngress, pins)
}

/// Attaches the program that shows how responses begin.
pub(crate) fn attach_head(
    program: &OwnedFd,
    interface: u32,
    pins: Option<&Pins>,
) -> Result<OwnedFd, Error> {
    Ok(attach("head", program, interface, Hook::TcxEgress, pins)?.link)
}

/// Attaches the program that hears of sockets to the control group of all processes, if this machine has
/// such groups.
pub(crate) fn attach_window(
    program: &OwnedFd,
    pins: Option<&Pins>,
) -> Result<Option<OwnedFd>, Error> {
    let failed = |source: io::Error| Error::AttachSockets { source };
    let pin = pins.map(|pins| pins.link("window"));
    if let Some(pin) = &pin
        && let Ok(link) = sys::open_pin(pin)
    {
        sys::link_update(link.as_fd(), program.as_fd()).map_err(failed)?;
        return Ok(Some(link));
    }
    let Some(group) = control_groups(&mounts()).and_then(|place| File::open(place).ok()) else {
        return Ok(None);
    };
    let target = group.as_raw_fd().cast_unsigned();
    let link = sys::link_create(program.as_fd(), target, Hook::SocketEvents).map_err(failed)?;
    if let Some(pin) = &pin {
        sys::pin(link.as_fd(), pin).map_err(failed)?;
    }
    Ok(Some(link))
}

/// What is mounted here (proc(5)).
pub fn mounts() -> String {
    std::fs::read_to_string("/proc/self/mounts").unwrap_or_default()
}

/// Where the control groups of version 2 are mounted; their root has all processes.
pub fn control_groups(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then_some(place)
    })
}

fn attach(
    name: &'static str,
    program: &OwnedFd,
    interface: u32,
    hook: Hook,
    pins: Option<&Pins>,
) -> Result<Attached, Error> {
    let failed = |source: io::Error| Error::Attach {
        program: name,
        interface,
        hint: hint(&source),
        source,
    };
    if let Some(pins) = pins
        && let Some(link) = take_over(name, program.as_fd(), interface, pins).map_err(failed)?
    {
        return Ok(Attached {
            link,
            taken_over: true,
        });
    }
    let link = sys::link_create(program.as_fd(), interface, hook).map_err(failed)?;
    if let Some(pins) = pins {
        sys::pin(link.as_fd(), &pins.link(name)).map_err(failed)?;
    }
    Ok(Attached {
        link,
        taken_over: false,
    })
}

/// The pinned link of an earlier process with our program in it, if it still is on this interface.
fn take_over(
    name: &str,
    program: BorrowedFd<'_>,
    interface: u32,
    pins: &Pins,
) -> io::Result<Option<OwnedFd>> {
    let path = pins.link(name);
    let link = match sys::open_pin(&path) {
        Ok(link) => link,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if sys::link_interface(link.as_fd())? == interface {
        sys::link_update(link.as_fd(), program)?;
        return Ok(Some(link));
    }
    // The interface was made anew, or the configuration names another one.
    std::fs::remove_file(&path)?;
    Ok(None)
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(nix::libc::EBUSY) => {
            "; another XDP program is there (`ip link show`, `bpftool net`): detach it first"
        }
        Some(nix::libc::ENODEV) => "; no such interface any more",
        Some(nix::libc::EPERM) => "; baton needs root, or CAP_BPF and CAP_NET_ADMIN",
        _ => "; `baton doctor` says what this kernel and NIC can do",
    }
}
