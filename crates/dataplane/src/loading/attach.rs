//! Attaches programs by links. A link is attached once, pinned, and from then on only updated.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
};

use tracing::warn;

use crate::{
    Error, Pins,
    kernel::{self, FEATURES, Kernel, XdpMode, XdpState},
    sys::{self, Hook},
};

/// `include/uapi/linux/if_link.h`
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// A link, and whether an earlier process left it.
pub(crate) struct Attached {
    pub link: OwnedFd,
    pub taken_over: bool,
}

/// How an XDP program is to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpChoice {
    /// Native or not at all.
    #[default]
    Native,
    /// Native where the driver takes it, else generic.
    Auto,
    /// Generic.
    Generic,
}

/// Attaches an XDP program in the chosen mode. With [`XdpChoice::Auto`], a program for frames in several pieces is
/// attached natively or not at all.
pub(crate) fn attach_xdp(
    name: &'static str,
    program: &OwnedFd,
    interface: u32,
    frags: bool,
    pins: Option<&Pins>,
    choice: XdpChoice,
) -> Result<(Attached, XdpMode), Error> {
    let attempt = |mode: XdpMode| {
        let flags = mode.flags();
        attach(name, program, interface, Hook::Xdp { flags }, pins)
    };
    let first = match choice {
        XdpChoice::Native | XdpChoice::Auto => XdpMode::Native,
        XdpChoice::Generic => XdpMode::Generic,
    };
    let attached = match attempt(first) {
        Err(Error::Attach { cause, .. }) if is_taken(&cause) => Err(Error::Attach {
            program: name,
            interface,
            hint: taken_hint(interface),
            cause,
        }),
        Err(Error::Attach { cause, .. }) if first == XdpMode::Native => {
            let words = kernel::native_refusal(program.as_fd(), interface);
            let words = words.unwrap_or_else(|| cause.to_string());
            if choice == XdpChoice::Auto && !frags {
                warn!(
                    "the driver of {} refuses native XDP: {words}",
                    interface_name(interface)
                );
                attempt(XdpMode::Generic)
            } else {
                Err(Error::Attach {
                    program: name,
                    interface,
                    hint: native_hint(&words, interface),
                    cause,
                })
            }
        }
        other => other,
    }?;
    // A link that was taken over runs in the mode in which an earlier process attached it.
    let state = XdpState::of(interface).ok();
    Ok((
        attached,
        state.and_then(|state| state.mode).unwrap_or(first),
    ))
}

impl XdpMode {
    const fn flags(self) -> u32 {
        match self {
            Self::Native => XDP_FLAGS_DRV_MODE,
            Self::Generic => XDP_FLAGS_SKB_MODE,
        }
    }
}

/// Attaches the data server's program.
pub(crate) fn attach_ds(
    program: &OwnedFd,
    interface: u32,
    pins: Option<&Pins>,
) -> Result<Attached, Error> {
    attach("ds", program, interface, Hook::TcxIngress, pins).map_err(of_tcx)
}

/// Attaches the program that follows responses as they leave.
pub(crate) fn attach_head(
    program: &OwnedFd,
    interface: u32,
    pins: Option<&Pins>,
) -> Result<OwnedFd, Error> {
    let attached = attach("head", program, interface, Hook::TcxEgress, pins);
    Ok(attached.map_err(of_tcx)?.link)
}

/// Attaches the program that keeps answers to the relay on this host.
pub(crate) fn attach_relay_answer(program: &OwnedFd, interface: u32) -> Result<OwnedFd, Error> {
    Ok(attach("relay_answer", program, interface, Hook::TcxIngress, None)?.link)
}

/// Attaches the program for socket events to the control group of all processes. Returns `None` if this machine has no
/// control groups of version 2.
pub(crate) fn attach_window(
    program: &OwnedFd,
    pins: Option<&Pins>,
) -> Result<Option<OwnedFd>, Error> {
    let failed = |cause: io::Error| Error::AttachSockets { cause };
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

/// Where the control groups of version 2 are mounted. Their root group has all processes.
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
    let failed = |cause: io::Error| Error::Attach {
        program: name,
        interface,
        hint: hint(&cause),
        cause,
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

/// Puts our program into the pinned link of an earlier process and returns that link, if it is still at this
/// interface.
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

/// Whether another program is attached to the interface, in this mode (EBUSY) or in the other one (EEXIST).
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(nix::libc::EBUSY | nix::libc::EEXIST)
    )
}

/// Says which program is attached to the interface, and how to detach it.
fn taken_hint(interface: u32) -> String {
    let name = interface_name(interface);
    let holder = XdpState::of(interface).ok().and_then(|state| state.holder);
    let whose = match holder {
        Some(holder) => holder.to_string(),
        None => "another XDP program".to_owned(),
    };
    format!(
        "; {whose} is attached there, and an interface takes one XDP program: stop what attached it, or detach it \
         (ip link set dev {name} xdp off, or xdpgeneric off; libxdp: xdp-loader unload {name} --all)"
    )
}

fn native_hint(words: &str, interface: u32) -> String {
    let name = interface_name(interface);
    // Only the host can turn these off if it does not let the guest do so.
    let remedy = if words.contains("GRO_HW") {
        " (of the virtual machine's NIC on its host: guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,\
         guest_ufo=off, or ctrl_guest_offloads=on, by which the driver turns them off itself)"
    } else {
        ""
    };
    format!(
        "; the driver of {name} refuses native XDP, and says: {words}{remedy}. Mend that, or write xdp = \"auto\" \
         under this [[node]]: then the program runs in generic mode, several times slower"
    )
}

/// The interface's name for people, or its number if the interface is gone.
pub(crate) fn interface_name(index: u32) -> String {
    nix::net::if_::if_indextoname(index).map_or_else(
        |_| format!("interface {index}"),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn of_tcx(error: Error) -> Error {
    match error {
        Error::Attach {
            program,
            interface,
            cause,
            ..
        } => Error::Attach {
            program,
            interface,
            hint: tcx_hint(&cause),
            cause,
        },
        other => other,
    }
}

/// What to do about an error of tcx. A kernel without tcx says that the program is invalid or not supported.
pub(crate) fn tcx_hint(error: &io::Error) -> String {
    let is_unknown = matches!(
        error.raw_os_error(),
        Some(nix::libc::EINVAL | nix::libc::EOPNOTSUPP)
    );
    let tcx = FEATURES.iter().find(|feature| feature.name == "tcx");
    match tcx.filter(|_| is_unknown) {
        Some(tcx) => format!(
            "; this is the answer of a kernel without tcx, which the program needs: {}",
            tcx.remedy(Kernel::look().release)
        ),
        None => hint(error),
    }
}

fn hint(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(nix::libc::ENODEV) => "; this interface no longer exists",
        Some(nix::libc::EPERM) => {
            "; run it as root with CAP_BPF and CAP_NET_ADMIN, and let no seccomp filter refuse bpf(2)"
        }
        Some(nix::libc::ENOMEM) => {
            "; raise the limit of this control group (memory.max; systemd: MemoryMax=) or the machine's memory"
        }
        _ => "; `baton doctor` says what this kernel and NIC can do",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(errno: i32) -> String {
        tcx_hint(&io::Error::from_raw_os_error(errno))
    }

    #[test]
    fn a_kernel_without_tcx() {
        for errno in [nix::libc::EINVAL, nix::libc::EOPNOTSUPP] {
            assert!(said(errno).contains("without tcx"), "{}", said(errno));
            assert!(
                said(errno).contains("CONFIG_NET_XGRESS=y"),
                "{}",
                said(errno)
            );
        }
        assert!(said(nix::libc::EPERM).contains("CAP_BPF"));
        assert!(said(nix::libc::ENOMEM).contains("memory.max"));
        assert!(said(nix::libc::ENODEV).contains("this interface no longer exists"));
    }

    #[test]
    fn a_driver_that_refuses_is_quoted_with_the_way_out() {
        let hint = native_hint("virtio_net: Too few free TX rings available", 1);
        assert!(hint.contains("says: virtio_net: Too few"), "{hint}");
        assert!(hint.contains("xdp = \"auto\""), "{hint}");
        assert!(!hint.contains("guest_tso4"), "{hint}");
        let hint = native_hint("Can't set XDP while host is implementing GRO_HW/CSUM", 1);
        assert!(hint.contains("guest_tso4=off"), "{hint}");
    }
}
