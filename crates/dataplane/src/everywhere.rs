//! One program at every interface of a node.
//!
//! What comes by one interface may have to leave by another. A frame that a native XDP program redirects needs a
//! driver that takes it (`ndo_xdp_xmit`); one from generic XDP leaves as any packet does. So either all interfaces
//! are native, and each takes frames from the others, or all are generic.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
};

use libbpf_rs::{Xdp, XdpFlags};

use crate::{
    Error, Pins, XdpMode,
    attach::{self, Attached},
};

/// `NETDEV_XDP_ACT_NDO_XMIT` of `include/uapi/linux/netdev.h`.
const TAKES_FRAMES: u64 = 4;

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
    pins: Option<&Pins>,
) -> Result<(Vec<Attached>, XdpMode), Error> {
    let attached = attach(name, interfaces, pins, |interface, pins| {
        attach::attach_xdp(name, program, interface, pins)
    })?;
    let Some((_, first)) = attached.first() else {
        return Ok((Vec::new(), XdpMode::Native));
    };
    let mut places = Vec::new();
    if interfaces.len() > 1 {
        for (interface, (one, _)) in interfaces.iter().zip(&attached) {
            places.push(
                Place::of(*interface, &one.link)
                    .map_err(|source| failed(name, *interface, source))?,
            );
        }
    }
    let is_generic = |place: &Place| place.mode == XdpMode::Generic;
    let mode = if places.is_empty() {
        *first
    } else if places.iter().all(Place::is_native_for_all) {
        XdpMode::Native
    } else {
        XdpMode::Generic
    };
    let links = attached.into_iter().map(|(one, _)| one);
    if mode == XdpMode::Native || places.iter().all(is_generic) {
        return Ok((links.collect(), mode));
    }
    let mut all = Vec::new();
    for ((one, place), interface) in links.zip(&places).zip(interfaces) {
        if is_generic(place) {
            all.push(one);
            continue;
        }
        let pins = pins.map(|pins| pins.at(*interface, interfaces));
        if let Some(pins) = &pins {
            pins.forget_link(name)?;
        }
        drop(one.link);
        all.push(attach::attach_xdp_generic(
            name,
            program,
            *interface,
            pins.as_ref(),
        )?);
    }
    Ok((all, mode))
}

/// What the kernel says of an interface with a program.
struct Place {
    mode: XdpMode,
    takes_frames: bool,
}

impl Place {
    fn of(interface: u32, link: &OwnedFd) -> io::Result<Self> {
        let index = i32::try_from(interface).map_err(io::Error::other)?;
        // The descriptor would be for attaching; a question needs none.
        let answer = Xdp::new(link.as_fd())
            .query(index, XdpFlags::NONE)
            .map_err(io::Error::other)?;
        Ok(Self {
            mode: match answer.skb_prog_id {
                0 => XdpMode::Native,
                _ => XdpMode::Generic,
            },
            // Kernels before 6.3 say nothing of any driver: those that know XDP mostly can.
            takes_frames: answer.feature_flags == 0 || answer.feature_flags & TAKES_FRAMES != 0,
        })
    }

    fn is_native_for_all(&self) -> bool {
        self.mode == XdpMode::Native && self.takes_frames
    }
}

fn failed(program: &'static str, interface: u32, source: io::Error) -> Error {
    Error::Attach {
        program,
        interface,
        source,
        hint: "; the kernel does not say how it is attached",
    }
}
