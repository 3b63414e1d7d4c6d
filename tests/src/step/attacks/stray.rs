//! A step that sends TCP data of a connection that no node knows.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use etherparse::{NetSlice, SlicedPacket, TcpHeader, TransportSlice};
use serde::Deserialize;
use socket2::{Domain, Protocol, Socket, Type};

use crate::frames::{self, Way};
use crate::span::Span;
use crate::world::{CLUSTER, World};

/// Sends a segment again and again, like a client that does not know that its connection is gone. It expects silence
/// at first, and a RST once the grace is over.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stray {
    /// The connection server, or the switch in front of it.
    at: String,
    /// The connection server's `stray_grace`.
    grace: Span,
}

const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 1023);
const ACKNOWLEDGED: u32 = 77_777;

impl Stray {
    /// Runs the step.
    ///
    /// # Errors
    /// A RST came within the grace, or none came after it.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let way = Way {
            from: frames::mac(world, "client")?,
            to: frames::mac(world, &self.at)?,
        };
        let header = TcpHeader {
            sequence_number: 1000,
            acknowledgment_number: ACKNOWLEDGED,
            ack: true,
            psh: true,
            ..TcpHeader::default()
        };
        let frame = [way.tcp(
            CLIENT,
            SocketAddrV4::new(CLUSTER, 80),
            header,
            b"what was that?",
        )?];
        let socket = world.lab.within("client", listen)??;
        let begin = Instant::now();
        frames::send(world, "client", &frame)?;
        ensure!(
            !reset_comes(&socket, self.grace.0 / 4)?,
            "a RST came at once"
        );
        frames::send(world, "client", &frame)?;
        ensure!(
            !reset_comes(&socket, self.grace.0 / 4)?,
            "a RST came after {:?}",
            begin.elapsed()
        );
        std::thread::sleep(
            (self.grace.0 + Duration::from_millis(200)).saturating_sub(begin.elapsed()),
        );
        // The first segment after the grace only makes the connection server ask the data servers once more.
        while begin.elapsed() < self.grace.0 + crate::wait::patience().0 {
            frames::send(world, "client", &frame)?;
            if reset_comes(&socket, Duration::from_millis(300))? {
                return Ok(());
            }
        }
        bail!("no RST came after {:?}", begin.elapsed())
    }
}

/// Opens a raw socket that gets a copy of all TCP packets that come to this host (raw(7)).
fn listen() -> Result<Socket> {
    Ok(Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP))?)
}

/// Whether a RST for the connection, one that the client would accept, comes within this time.
fn reset_comes(socket: &Socket, within: Duration) -> Result<bool> {
    let end = Instant::now() + within;
    let mut buffer = [0; 2048];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        socket.set_read_timeout(Some(left))?;
        let mut reader = socket;
        match reader.read(&mut buffer) {
            Ok(length) if is_reset(&buffer[..length]) => return Ok(true),
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                return Err(error.into());
            }
            _ => {}
        }
    }
}

fn is_reset(packet: &[u8]) -> bool {
    let Ok(sliced) = SlicedPacket::from_ip(packet) else {
        return false;
    };
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) = (sliced.net, sliced.transport)
    else {
        return false;
    };
    ip.header().source_addr() == CLUSTER
        && tcp.destination_port() == CLIENT.port()
        && tcp.rst()
        && tcp.sequence_number() == ACKNOWLEDGED
}
