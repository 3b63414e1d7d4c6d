//! Whole Ethernet frames, made by hand and sent as they are.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::{Context as _, Result};
use baton_net::announce::announce;
use baton_net::{Link, Netlink};
use etherparse::{IpNumber, PacketBuilder, TcpHeader};

use crate::world::World;

/// A whole frame.
pub type Frame = Vec<u8>;

/// Where the IPv4 header of a frame begins.
pub const IP_AT: usize = 14;
/// Where its TCP header begins, if the IPv4 header has no options.
pub const TCP_AT: usize = 34;

/// Frames of one socket: a veth takes them at once, so they never fill its send buffer.
const BURST: usize = 8192;
const INTERFACE: &str = "eth0";
const TTL: u8 = 64;

/// The MAC address of a host.
///
/// # Errors
/// No such host.
pub fn mac(world: &World, host: &str) -> Result<[u8; 6]> {
    world
        .lab
        .within(host, || inside(async |link: Link| Ok(link.mac)))?
}

/// Sends frames out of a host's interface.
///
/// # Errors
/// The kernel refuses.
pub fn send(world: &World, host: &str, frames: &[Frame]) -> Result<()> {
    world.lab.within(host, || {
        inside(async |link: Link| {
            for burst in frames.chunks(BURST) {
                announce(&link, burst, NonZeroU32::MIN, Duration::ZERO).await?;
            }
            Ok(())
        })
    })?
}

/// Who sends a frame to whom, on the LAN.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The sender's MAC.
    pub from: [u8; 6],
    /// The receiver's MAC.
    pub to: [u8; 6],
}

impl Way {
    /// A TCP segment over IPv4 with good lengths and checksums.
    ///
    /// # Errors
    /// A payload that fits no packet.
    pub fn tcp(
        &self,
        from: SocketAddrV4,
        to: SocketAddrV4,
        header: TcpHeader,
        payload: &[u8],
    ) -> Result<Frame> {
        let header = TcpHeader {
            source_port: from.port(),
            destination_port: to.port(),
            ..header
        };
        let builder = PacketBuilder::ethernet2(self.from, self.to)
            .ipv4(from.ip().octets(), to.ip().octets(), TTL)
            .tcp_header(header);
        let mut frame = Vec::with_capacity(builder.size(payload.len()));
        builder
            .write(&mut frame, payload)
            .context("cannot make a TCP frame")?;
        Ok(frame)
    }

    /// An IPv4 packet of any protocol.
    ///
    /// # Errors
    /// A payload that fits no packet.
    pub fn ip(&self, from: Ipv4Addr, to: Ipv4Addr, protocol: u8, payload: &[u8]) -> Result<Frame> {
        let builder =
            PacketBuilder::ethernet2(self.from, self.to).ipv4(from.octets(), to.octets(), TTL);
        let mut frame = Vec::with_capacity(builder.size(payload.len()));
        builder
            .write(&mut frame, IpNumber(protocol), payload)
            .context("cannot make an IP frame")?;
        Ok(frame)
    }
}

fn inside<T>(work: impl AsyncFnOnce(Link) -> Result<T>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async { work(Netlink::open()?.link_named(INTERFACE).await?).await })
}
