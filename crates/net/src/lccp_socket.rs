//! The daemon's socket for messages between nodes: raw IPv4 of the configured protocol.

use std::fs;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use baton_wire::Arrival;
use nix::sys::socket::{setsockopt, sockopt::RcvBufForce};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::{Error, Result, lccp_filter};

/// Sends and receives what follows the IPv4 header. It receives only packets to its own address.
#[derive(Debug)]
pub struct LccpSocket {
    socket: AsyncFd<Socket>,
    own: Ipv4Addr,
    protocol: u8,
    /// When the socket was last found empty, in nanoseconds after `opened`.
    empty: AtomicU64,
    opened: Instant,
}

/// A message as it came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The sender's address, as the packet gives it.
    pub sender: Ipv4Addr,
    /// What followed the IPv4 header.
    pub payload: &'a [u8],
    /// The longest time for which it can have waited here to be read. A reader that is kept from running is late, and
    /// what it reads then is old.
    pub waited: Duration,
}

impl Received<'_> {
    /// When it came, by the current wall clock of this machine.
    pub fn came(&self) -> Arrival {
        Arrival::within(self.waited, SystemTime::now().into())
    }
}

impl LccpSocket {
    /// The longest IPv4 packet, bytes: a buffer of this size never truncates a packet.
    pub const MAX_PACKET: usize = 65_535;

    /// How many bytes of packets may wait at a socket: some 2,000 packets, however short they are.
    const ROOM: usize = 8 << 20;

    /// A socket that sends from and receives at `own`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::System`] without CAP_NET_RAW and CAP_NET_ADMIN, or if `own` is not an address of this host.
    pub fn open(own: Ipv4Addr, protocol: u8) -> Result<Self> {
        let open = || -> io::Result<AsyncFd<Socket>> {
            let kind = Type::RAW.nonblocking();
            let socket = Socket::new(
                Domain::IPV4,
                kind,
                Some(Protocol::from(i32::from(protocol))),
            )?;
            socket.bind(&SocketAddr::V4(SocketAddrV4::new(own, 0)).into())?;
            // SAFETY: a Socket names one file descriptor, which stays open until it is dropped,
            // and the AsyncFd takes it over and never gives out a mutable reference to it.
            Ok(unsafe { AsyncFd::register(socket) }?)
        };
        let doing = format!("open a raw socket for IP protocol {protocol} at {own}");
        let socket = Self {
            socket: open().map_err(Error::system(doing))?,
            own,
            protocol,
            empty: AtomicU64::new(0),
            opened: Instant::now(),
        };
        socket.make_room()?;
        Ok(socket)
    }

    /// The address that this socket sends from and receives at.
    pub const fn own(&self) -> Ipv4Addr {
        self.own
    }

    /// Receives only messages with these commands (`enum lccp_command`) from now on.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn hear_only(&self, commands: &[u8]) -> Result<()> {
        self.filter(commands, true)
    }

    /// Receives no messages with these commands from now on.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn hear_not(&self, commands: &[u8]) -> Result<()> {
        self.filter(commands, false)
    }

    fn filter(&self, commands: &[u8], heard: bool) -> Result<()> {
        self.socket
            .get_ref()
            .attach_filter(&lccp_filter::by_command(commands, heard))
            .map_err(Error::system(
                "attach a filter for LCCP messages to a raw socket",
            ))
    }

    /// Makes room for [`Self::ROOM`] bytes of packets that wait to be read, beyond what `net.core.rmem_max` allows. Each
    /// packet takes about four kilobytes, however short it is.
    ///
    /// # Errors
    /// [`Error::System`] without CAP_NET_ADMIN.
    fn make_room(&self) -> Result<()> {
        setsockopt(self.socket.get_ref(), RcvBufForce, &Self::ROOM)
            .map_err(io::Error::from)
            .map_err(Error::system("give a raw socket a larger receive buffer"))
    }

    /// How many packets of this protocol were lost because a socket at `own` had no room: the sum over all such sockets
    /// that are open in this network namespace.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel does not show its raw sockets.
    pub fn lost_at(own: Ipv4Addr, protocol: u8) -> Result<u64> {
        let doing = "read from /proc/thread-self/net/raw how many packets raw sockets have dropped";
        let table =
            fs::read_to_string("/proc/thread-self/net/raw").map_err(Error::system(doing))?;
        Ok(lost_in(&table, own, protocol))
    }

    /// Sends `payload` in one packet; the kernel writes the IPv4 header.
    ///
    /// # Errors
    /// [`Error::System`], for instance if there is no route, or if the packet is larger than a link on the way allows.
    pub async fn send_to(&self, payload: &[u8], to: Ipv4Addr) -> Result<()> {
        let to_address = SocketAddr::V4(SocketAddrV4::new(to, 0)).into();
        self.socket
            .async_io(Interest::WRITABLE, |socket| {
                socket.send_to(payload, &to_address)
            })
            .await
            .map(|_| ())
            .map_err(Error::system(format!("send an LCCP message to {to}")))
    }

    /// The next message. `buffer` should have [`Self::MAX_PACKET`] bytes.
    ///
    /// Safe to cancel: a message is taken only by the poll that returns it.
    ///
    /// # Errors
    /// [`Error::Malformed`] for a packet that is not IPv4 of this protocol or was truncated by the buffer; the socket
    /// stays usable. [`Error::System`].
    pub async fn recv_from<'a>(&self, buffer: &'a mut [u8]) -> Result<Received<'a>> {
        let length = self
            .socket
            .async_io(Interest::READABLE, |socket| self.read(socket, buffer))
            .await
            .map_err(Error::system("receive an LCCP message"))?;
        self.received(&buffer[..length])
    }
}

impl LccpSocket {
    /// The next message that has already come; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::recv_from`].
    pub fn try_recv_from<'a>(&self, buffer: &'a mut [u8]) -> Result<Option<Received<'a>>> {
        match self.read(self.socket.get_ref(), buffer) {
            Ok(length) => self.received(&buffer[..length]).map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Error::system("receive an LCCP message")(error)),
        }
    }

    fn read(&self, mut socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let begun = self.opened.elapsed();
        let read = socket.read(buffer);
        if matches!(&read, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            // A u64 of nanoseconds holds 584 years.
            self.empty.store(begun.as_nanos() as u64, Relaxed);
        }
        read
    }

    /// The message in a packet that was just read. It can have waited at most since the socket was last empty.
    fn received<'a>(&self, packet: &'a [u8]) -> Result<Received<'a>> {
        let (sender, payload) = strip(packet, self.protocol)?;
        let empty = Duration::from_nanos(self.empty.load(Relaxed));
        Ok(Received {
            sender,
            payload,
            waited: self.opened.elapsed().saturating_sub(empty),
        })
    }
}

/// Sums the last column of those lines of `table` whose second column is this address, with this protocol as its port.
fn lost_in(table: &str, own: Ipv4Addr, protocol: u8) -> u64 {
    let at = format!("{:08X}:{protocol:04X}", u32::from_ne_bytes(own.octets()));
    table
        .lines()
        .skip(1)
        .filter(|line| line.split_whitespace().nth(1) == Some(&at))
        .filter_map(|line| line.split_whitespace().next_back()?.parse::<u64>().ok())
        .sum()
}

/// Removes the IPv4 header, which Linux leaves on what a raw socket receives (raw(7)). Returns the sender, and what
/// followed the header.
fn strip(packet: &[u8], protocol: u8) -> Result<(Ipv4Addr, &[u8])> {
    const WITHOUT_OPTIONS: usize = 20;
    let Some(fixed) = packet.first_chunk::<WITHOUT_OPTIONS>() else {
        return Err(Error::Malformed("it is shorter than an IPv4 header"));
    };
    let (version, header) = (fixed[0] >> 4, usize::from(fixed[0] & 0x0f) * 4);
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if version != 4 {
        return Err(Error::Malformed("it is not IPv4"));
    }
    if header < WITHOUT_OPTIONS || header > total {
        return Err(Error::Malformed("its IPv4 header length is impossible"));
    }
    if total > packet.len() {
        return Err(Error::Malformed(
            "its total length exceeds what was received",
        ));
    }
    if fixed[9] != protocol {
        return Err(Error::Malformed("it is of another IP protocol"));
    }
    let sender = Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]);
    Ok((sender, &packet[header..total]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(options: usize, payload: &[u8]) -> Vec<u8> {
        let header = 20 + options;
        let mut packet = vec![0; header];
        packet[0] = 0x40 | (header / 4) as u8;
        packet[2..4].copy_from_slice(&((header + payload.len()) as u16).to_be_bytes());
        packet[9] = 253;
        packet[12..16].copy_from_slice(&[192, 0, 2, 7]);
        packet.extend(payload);
        packet
    }

    #[test]
    fn losses_of_the_sockets_at_an_address_are_summed() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n 253: 0100007F:00FD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24081 2 0000000000000000 3\n 253: 0100007F:00FD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24082 2 0000000000000000 40\n 253: 0200007F:00FD 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24083 2 0000000000000000 500\n   1: 0100007F:0001 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24084 2 0000000000000000 6000\n";
        assert_eq!(lost_in(table, Ipv4Addr::LOCALHOST, 253), 43);
        assert_eq!(lost_in(table, Ipv4Addr::new(127, 0, 0, 3), 253), 0);
    }

    #[test]
    fn strips_headers_of_any_length() {
        for options in [0, 4, 40] {
            let packet = packet(options, b"message");
            let (sender, payload) = strip(&packet, 253).unwrap();
            assert_eq!(payload, b"message");
            assert_eq!(sender, Ipv4Addr::new(192, 0, 2, 7));
        }
        assert_eq!(strip(&packet(0, b""), 253).unwrap().1, b"");
    }

    #[test]
    fn drops_what_is_behind_the_packet() {
        let mut padded = packet(0, b"message");
        padded.extend([0; 9]);
        assert_eq!(strip(&padded, 253).unwrap().1, b"message");
    }

    #[test]
    fn refuses_lies() {
        let good = packet(4, b"message");
        let with = |at: usize, value: u8| {
            let mut bad = good.clone();
            bad[at] = value;
            bad
        };
        let lies = [
            with(0, 0x66),
            with(0, 0x44),
            with(0, 0x4f),
            with(2, 0xff),
            with(3, 8),
            with(9, 6),
        ];
        for lie in lies {
            assert!(strip(&lie, 253).is_err(), "{lie:?}");
        }
        assert!(strip(&good[..19], 253).is_err());
        assert!(strip(&good[..good.len() - 1], 253).is_err());
    }

    proptest! {
        #[test]
        fn never_reads_past_the_end(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok((_, payload)) = strip(&packet, 253) {
                prop_assert!(payload.len() + 20 <= packet.len());
            }
        }
    }
}
