//! Packets that the kernel has merged: one packet with several segments of one client. They are injected as the
//! network card of a virtual machine delivers them, with a header that says how long the segments were (packet(7),
//! `PACKET_VNET_HDR`; include/uapi/linux/virtio_net.h).

use std::{mem::size_of, os::fd::AsRawFd as _};

use nix::{
    libc,
    sys::socket::{AddressFamily, SockFlag, SockType, socket},
};

use crate::prelude::*;

const NEEDS_CHECKSUM: u8 = 1;
const TCP_OVER_IPV4: u8 = 1;
const CHECKSUM_AT: u16 = 16;

/// Injects the packet at this namespace's loopback, as if it had been segments with `segment_bytes` bytes of payload
/// each.
pub fn send_merged(packet: &Segment, segment_bytes: u16) {
    let frame = frame_here(packet);
    let headers = (frame.len() - packet.payload.len()) as u16;
    let lengths = [headers, segment_bytes, TCP as u16, CHECKSUM_AT];
    let mut bytes = vec![NEEDS_CHECKSUM, TCP_OVER_IPV4];
    bytes.extend(lengths.iter().flat_map(|length| length.to_ne_bytes()));
    bytes.extend(frame);
    send(&bytes);
}

fn send(bytes: &[u8]) {
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::empty(),
        None,
    )
    .unwrap();
    let on: libc::c_int = 1;
    // SAFETY: the option's value is a C int, whose address and size these are.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_VNET_HDR,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
    let to = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as libc::sa_family_t,
        sll_protocol: (libc::ETH_P_IP as u16).to_be(),
        sll_ifindex: LOOPBACK as libc::c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the kernel reads as many bytes as the slice has, and an address of the size that is given.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            0,
            (&raw const to).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    assert_eq!(
        sent,
        bytes.len() as isize,
        "{}",
        std::io::Error::last_os_error()
    );
}
