//! One program at every interface of a node.
//!
//! What comes by one interface may have to leave by another. A frame that a native XDP program redirects needs a
//! driver that takes it (`ndo_xdp_xmit`); one from generic XDP leaves as any packet does. So either all interfaces are
//! native, and each takes frames from the others, or all are generic. The configuration decides between the two: a
//! node that is to be native does not start if one of its interfaces cannot be native.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use tracing::warn;

use crate::{
    Error, Pins, XdpChoice, XdpMode,
    kernel::XdpState,
    loading::attach::{self, Attached, interface_name},
    sys,
};

/// Attaches a program by `attach_at` to each of these interfaces, and to no other one.
pub(crate) fn attach<T>(
    program: &str,
    interfaces: &[u32],
    pins: Option<&Pins>,
    attach_at: impl Fn(u32, Option<&Pins>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    if let Some(pins) = pins {
        pins.sort_links(program, interfaces)?;
    }
    let attached = (interfaces.iter())
        .map(|interface| {
            let pins = pins.map(|pins| pins.at(*interface, interfaces));
            attach_at(*interface, pins.as_ref())
        })
        .collect::<Result<_, _>>()?;
    if let Some(pins) = pins {
        pins.forget_links_elsewhere(program, interfaces)?;
    }
    Ok(attached)
}

/// Attaches an XDP program to each of these interfaces, in one mode at all of them.
pub(crate) fn attach_xdp(
    name: &'static str,
    program: &OwnedFd,
    interfaces: &[u32],
    frags: bool,
    pins: Option<&Pins>,
    choice: XdpChoice,
) -> Result<(Vec<Attached>, XdpMode), Error> {
    let attached = attach(name, interfaces, pins, |interface, pins| {
        attach::attach_xdp(name, program, interface, frags, pins, choice)
    })?;
    if let [(_, mode)] = attached[..] {
        return Ok((attached.into_iter().map(|(one, _)| one).collect(), mode));
    }
    let mut found = Vec::new();
    for (interface, (_, mode)) in interfaces.iter().zip(&attached) {
        let state = XdpState::of(*interface).map_err(|error| untold(name, *interface, error))?;
        found.push(Found {
            interface: *interface,
            mode: *mode,
            takes_frames: takes_frames(&state),
        });
    }
    let wanted = mode_of_all(name, choice, &found)?;
    let mut links = Vec::new();
    for ((one, mode), interface) in attached.into_iter().zip(interfaces) {
        if mode == wanted {
            links.push(one);
            continue;
        }
        let pins = pins.map(|pins| pins.at(*interface, interfaces));
        if let Some(pins) = &pins {
            pins.forget_link(name)?;
        }
        sys::link_detach(one.link.as_fd()).map_err(|cause| Error::Attach {
            program: name,
            interface: *interface,
            cause,
            hint: "; it is attached there in the other mode, and cannot be detached".to_owned(),
        })?;
        let alike = match wanted {
            XdpMode::Native => XdpChoice::Native,
            XdpMode::Generic => XdpChoice::Generic,
        };
        links.push(attach::attach_xdp(name, program, *interface, frags, pins.as_ref(), alike)?.0);
    }
    Ok((links, wanted))
}

/// One of several interfaces, with the program attached.
struct Found {
    interface: u32,
    mode: XdpMode,
    takes_frames: bool,
}

/// The mode that all interfaces are to have.
fn mode_of_all(
    program: &'static str,
    choice: XdpChoice,
    found: &[Found],
) -> Result<XdpMode, Error> {
    let all_generic = found.iter().all(|one| one.mode == XdpMode::Generic);
    if choice == XdpChoice::Generic || all_generic {
        // Links of an earlier process stay generic, as the link of a node with one interface does.
        return Ok(XdpMode::Generic);
    }
    let takes_none = |one: &&Found| one.mode == XdpMode::Native && !one.takes_frames;
    if let Some(one) = found.iter().find(takes_none) {
        let card = interface_name(one.interface);
        if choice == XdpChoice::Native {
            return Err(Error::Attach {
                program,
                interface: one.interface,
                cause: io::ErrorKind::Unsupported.into(),
                hint: no_frames_hint(&card),
            });
        }
        warn!(
            "the driver of {card} cannot send packets that came by another interface in native XDP"
        );
        return Ok(XdpMode::Generic);
    }
    let some_generic = found.iter().any(|one| one.mode == XdpMode::Generic);
    Ok(match choice {
        XdpChoice::Auto if some_generic => XdpMode::Generic,
        // An interface at which an earlier process attached the program in generic mode, next to native ones, is asked
        // to be native now.
        _ => XdpMode::Native,
    })
}

fn takes_frames(state: &XdpState) -> bool {
    /// `NETDEV_XDP_ACT_NDO_XMIT` of `include/uapi/linux/netdev.h`.
    const NDO_XMIT: u64 = 4;
    // Kernels before 6.3 say nothing about drivers. Most drivers with native XDP can take frames.
    state.features == 0 || state.features & NDO_XMIT != 0
}

fn no_frames_hint(card: &str) -> String {
    format!(
        "; the driver of {card} cannot send packets that came by another interface of this node in native XDP. Some \
         can with more queues (ethtool -L) or a newer kernel, and a veth can if its peer has an XDP program; or write \
         xdp = \"auto\" under this [[node]]: then the programs run in generic mode at all its interfaces, several \
         times slower"
    )
}

fn untold(program: &'static str, interface: u32, error: libbpf_rs::Error) -> Error {
    Error::Attach {
        program,
        interface,
        cause: io::Error::other(error),
        hint: "; the kernel does not say how it is attached".to_owned(),
    }
}
