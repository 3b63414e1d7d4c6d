//! Whether XDP programs are loaded for frames in several pieces (`xdp.frags`).

use std::{io::stdin, os::fd::AsFd as _};

use libbpf_rs::{Xdp, XdpFlags};

/// Frames of this MTU are in one piece with every driver.
const USUAL_MTU: u32 = 1500;
/// `NETDEV_XDP_ACT_RX_SG` of include/uapi/linux/netdev.h: the driver shows programs frames in several pieces.
const RX_SG: u64 = 32;

/// Whether the programs for this interface should take frames in several pieces. They should if its MTU makes such
/// frames, and if its driver runs programs natively and can show them such frames. Programs that run generically must
/// not take them: the kernel then builds each packet anew from pages of a pool, and further up such packets have been
/// lost and have brought kernels down. Other programs get the frames in one piece.
pub fn wants_frags(interface: u32, mtu: u32) -> bool {
    // A query does not use the descriptor, which would be that of a program to attach.
    let stdin = stdin();
    let index = i32::try_from(interface).unwrap_or(0);
    mtu > USUAL_MTU
        && Xdp::new(stdin.as_fd())
            .query(index, XdpFlags::NONE)
            .is_ok_and(|answer| answer.feature_flags & RX_SG != 0 && answer.skb_prog_id == 0)
}
