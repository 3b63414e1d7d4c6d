//! TCP segments that no client sends.

use std::net::{Ipv4Addr, SocketAddrV4};

use anyhow::Result;
use etherparse::TcpHeader;
use fastrand::Rng;

use super::target::Target;
use crate::frames::{Frame, IP_AT, TCP_AT};
use crate::world::CLUSTER;

const SERVICE: SocketAddrV4 = SocketAddrV4::new(CLUSTER, 80);
const REQUEST: &[u8] = b"GET /whoami HTTP/1.1\r\nHost: cluster\r\n\r\n";
/// Offsets in frames of fields of the IPv4 and TCP headers (RFC 791; RFC 9293, 3.1).
const LENGTH_AT: usize = IP_AT + 2;
const FRAGMENT_AT: usize = IP_AT + 6;
const OFFSET_AT: usize = TCP_AT + 12;
const FLAGS_AT: usize = TCP_AT + 13;
const OPTIONS_AT: usize = TCP_AT + 20;

pub(super) fn fragments(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    for fragment in [0x2000_u16, 0x2001, 0x0001, 0x1fff, 0x3fff] {
        let mut frame = data(target, random)?;
        frame[FRAGMENT_AT..][..2].copy_from_slice(&fragment.to_be_bytes());
        frames.push(frame);
    }
    Ok(())
}

/// Adds segments with all flags but those that open a connection (SYN alone, with or without ECN), which are
/// well-behaved.
pub(super) fn flags(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    const SYN: u8 = 0x02;
    const OPENING: u8 = 0x3f;
    for flags in (0..=u8::MAX).filter(|flags| flags & OPENING != SYN) {
        let mut frame = data(target, random)?;
        frame[FLAGS_AT] = flags;
        frames.push(frame);
    }
    Ok(())
}

pub(super) fn lengths(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    let good = data(target, random)?;
    for total in [0_u16, 1, 19, 20, 39, 1500, 65_535] {
        let mut frame = good.clone();
        frame[LENGTH_AT..][..2].copy_from_slice(&total.to_be_bytes());
        frames.push(frame);
    }
    // IP versions 0 and 6, and IP headers of 0 to 16 and of 60 bytes.
    for first in [0x05, 0x65, 0x40, 0x41, 0x44, 0x4f] {
        let mut frame = good.clone();
        frame[IP_AT] = first;
        frames.push(frame);
    }
    for words in [0, 1, 4, 15] {
        let mut frame = good.clone();
        frame[OFFSET_AT] = words << 4;
        frame.truncate(TCP_AT + 20);
        let total = (frame.len() - IP_AT) as u16; // 40
        frame[LENGTH_AT..][..2].copy_from_slice(&total.to_be_bytes());
        frames.push(frame);
    }
    Ok(())
}

pub(super) fn short(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    let good = data(target, random)?;
    for length in IP_AT..good.len() {
        frames.push(good[..length].to_vec());
    }
    Ok(())
}

pub(super) fn options(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    // Each option (MSS, scale, SACK, timestamps and an unknown kind) gets a length of 0, of 1, or beyond the end.
    for kind in [2, 3, 4, 8, 77] {
        for length in [0, 1, 41, 255] {
            let header = TcpHeader {
                syn: true,
                sequence_number: random.u32(..),
                ..TcpHeader::default()
            };
            let mut header = header;
            let _ = header.set_options_raw(&[1, 1, 1, 1]); // one word, which always fits
            let mut frame = target
                .way
                .tcp(anyone(target, random), SERVICE, header, &[])?;
            frame[OPTIONS_AT..][..2].copy_from_slice(&[kind, length]);
            frames.push(frame);
        }
    }
    Ok(())
}

pub(super) fn syn(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    let header = TcpHeader {
        syn: true,
        sequence_number: random.u32(..),
        ..TcpHeader::default()
    };
    let from = SocketAddrV4::new(stranger(random), random.u16(1..));
    frames.push(target.way.tcp(from, SERVICE, header, &[])?);
    Ok(())
}

pub(super) fn stray(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    frames.push(data(target, random)?);
    let header = TcpHeader {
        acknowledgment_number: random.u32(..),
        ack: true,
        ..TcpHeader::default()
    };
    frames.push(
        target
            .way
            .tcp(anyone(target, random), SERVICE, header, &[])?,
    );
    Ok(())
}

pub(super) fn noise(target: &Target, random: &mut Rng, frames: &mut Vec<Frame>) -> Result<()> {
    let mut payload = vec![0; random.usize(..200)];
    random.fill(&mut payload);
    let protocol = random.choice([6, 6, 6, 253, 253, 1, 17, 47]).unwrap_or(6);
    frames.push(
        target
            .way
            .ip(stranger(random), CLUSTER, protocol, &payload)?,
    );
    Ok(())
}

/// The kinds of segments that a sweep sends from all ports of a client.
#[derive(Clone, Copy)]
pub(super) enum Sweep {
    Acks,
    Data,
    Fins,
    Resets,
}

/// Adds a segment from each port that may be a client's, like a sender who does not know which ports the client uses.
pub(super) fn sweep(
    target: &Target,
    random: &mut Rng,
    what: Sweep,
    frames: &mut Vec<Frame>,
) -> Result<()> {
    for port in 1024..=u16::MAX {
        let header = TcpHeader {
            sequence_number: random.u32(..),
            acknowledgment_number: random.u32(..),
            ack: true,
            psh: matches!(what, Sweep::Data),
            fin: matches!(what, Sweep::Fins),
            rst: matches!(what, Sweep::Resets),
            window_size: 1000,
            ..TcpHeader::default()
        };
        let payload = match what {
            Sweep::Data => REQUEST,
            _ => &[],
        };
        let from = SocketAddrV4::new(target.client, port);
        frames.push(target.way.tcp(from, SERVICE, header, payload)?);
    }
    Ok(())
}

/// A request in a flow that nobody has opened.
fn data(target: &Target, random: &mut Rng) -> Result<Frame> {
    let header = TcpHeader {
        sequence_number: random.u32(..),
        acknowledgment_number: random.u32(..),
        ack: true,
        psh: true,
        window_size: 1000,
        ..TcpHeader::default()
    };
    target
        .way
        .tcp(anyone(target, random), SERVICE, header, REQUEST)
}

/// A random port at the client's own address.
fn anyone(target: &Target, random: &mut Rng) -> SocketAddrV4 {
    SocketAddrV4::new(target.client, random.u16(1..))
}

/// An address in RFC 2544's benchmarking network, which no host has.
fn stranger(random: &mut Rng) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, random.u8(..), random.u8(..))
}
