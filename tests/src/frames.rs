//! Whole Ethernet frames, which are made by hand and sent as they are.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use baton_lab::BRIDGE;
use etherparse::{IpNumber, PacketBuilder, TcpHeader};
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockType, bind, socket};
use serde_json::Value;
use socket2::Socket;

use crate::slowness::patience;
use crate::world::World;

/// A whole frame.
pub type Frame = Vec<u8>;

/// Where the IPv4 header of a frame begins.
pub const IP_AT: usize = 14;
/// Where the TCP header of a frame begins, if the IPv4 header has no options.
pub const TCP_AT: usize = 34;

/// Where the checksum stands in an IPv4 header.
const SUM_AT: usize = 10;

const INTERFACE: &str = "eth0";
const TTL: u8 = 64;

/// The send buffer of the socket, in bytes; the kernel doubles the value. A frame counts against the buffer until its
/// receiver has taken it, whatever queue it waits in, so the buffer holds some 80 small frames. Every queue on the way
/// holds more (a veth's ring 256, a CPU's backlog 1000), so a slow machine makes the sender wait and nothing is lost.
const ON_THE_WAY: usize = 32 * 1024;
/// The send buffer of a flood, larger than all queues on the way: what does not fit is lost there, and the sender
/// never waits.
const FLOOD_ON_THE_WAY: usize = 4 * 1024 * 1024;

/// The MAC address of a host.
///
/// # Errors
/// The lab has no such host.
pub fn mac(world: &World, host: &str) -> Result<[u8; 6]> {
    let link = world.lab.within(host, link)??;
    link.addr()
        .with_context(|| format!("{INTERFACE} of {host} has no MAC address"))
}

/// Sends frames out of a host's interface, as fast as their receiver takes them.
///
/// # Errors
/// The kernel refuses, or nobody takes the frames.
pub fn send(world: &World, host: &str, frames: &[Frame]) -> Result<()> {
    world.lab.within(host, || {
        let socket = open()?;
        frames.iter().try_for_each(|frame| send_one(&socket, frame))
    })?
}

/// Sends a frame again and again out of the interface of the namespace that this thread is in, whether or not the
/// receiver takes them. Before each sending `next` changes the frame; the flood ends when `next` returns false.
/// Returns the number of frames.
///
/// # Errors
/// The kernel refuses.
pub fn flood(mut frame: Frame, mut next: impl FnMut(&mut Frame) -> bool) -> Result<u64> {
    let socket = open()?;
    socket.set_send_buffer_size(FLOOD_ON_THE_WAY)?;
    let mut sent = 0;
    while next(&mut frame) {
        send_one(&socket, &frame)?;
        sent += 1;
    }
    Ok(sent)
}

/// Writes the right checksum into an IPv4 header without options (RFC 791, 3.1).
pub fn write_sum(frame: &mut Frame) {
    let ip = &mut frame[IP_AT..TCP_AT];
    ip[SUM_AT..SUM_AT + 2].fill(0);
    let words = ip
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16; // what is left fits
    ip[SUM_AT..SUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The number of frames that have been lost so far between two hosts' interfaces for want of room: counted where a
/// veth hands them to the kernel, and where the bridge's port hands them to the receiver.
///
/// # Errors
/// The lab has no such host.
pub fn lost(world: &World, from: &str, to: &str) -> Result<u64> {
    Ok(unsent(world, from, INTERFACE)? + unsent(world, BRIDGE, to)?)
}

fn unsent(world: &World, host: &str, interface: &str) -> Result<u64> {
    let words = ["ip", "-j", "-s", "link", "show", "dev", interface];
    let shown: Value = serde_json::from_str(&world.run(host, &words)?)?;
    shown[0]["stats64"]["tx"]["dropped"]
        .as_u64()
        .with_context(|| format!("ip tells no losses of {interface} on {host}"))
}

/// Opens a socket for whole frames (packet(7)), which receives none because its protocol is 0.
fn open() -> Result<Socket> {
    let owned = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let socket = Socket::from(owned);
    bind(socket.as_raw_fd(), &link()?)?;
    socket.set_send_buffer_size(ON_THE_WAY)?;
    socket.set_write_timeout(Some(patience()))?;
    Ok(socket)
}

/// The interface of the namespace that this thread is in.
fn link() -> Result<LinkAddr> {
    let mut links = getifaddrs()?.filter(|one| one.interface_name == INTERFACE);
    let link = links.find_map(|one| one.address?.as_link_addr().copied());
    link.with_context(|| format!("there is no {INTERFACE}"))
}

fn send_one(socket: &Socket, frame: &[u8]) -> Result<()> {
    let end = Instant::now() + patience();
    loop {
        match socket.send(frame) {
            // The interface's own queue is full.
            Err(error)
                if error.raw_os_error() == Some(Errno::ENOBUFS as i32) && Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done.map(drop).context("cannot send a frame"),
        }
    }
}

/// The sender and the receiver of a frame on the LAN.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The MAC address of the sender.
    pub from: [u8; 6],
    /// The MAC address of the receiver.
    pub to: [u8; 6],
}

impl Way {
    /// A TCP segment over IPv4 with good lengths and checksums.
    ///
    /// # Errors
    /// The payload fits no packet.
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
    /// The payload fits no packet.
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
