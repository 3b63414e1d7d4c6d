//! The far end's error, reported to a program that waits in connect(): an ICMP error about its SYN, which the kernel
//! turns into the same error number (`icmp_err_convert` in net/ipv4/icmp.c, `icmpv6_err_convert` in net/ipv6/icmp.c).

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
};

use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpNumber, Ipv4Header, Ipv6FlowLabel,
    Ipv6Header, icmpv4, icmpv6,
};
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};

/// Whether an ICMP error can report `error`. A timeout cannot be reported: the program's own timer does that, and has
/// run for longer.
pub(crate) fn can_be_told(error: &io::Error) -> bool {
    error.raw_os_error().map(Errno::from_raw) != Some(Errno::ETIMEDOUT)
        && error.kind() != io::ErrorKind::TimedOut
}

/// Sends the error to the socket at `at`, whose SYN to the agent's `port` had the sequence number `seq`.
pub(crate) fn tell(at: SocketAddr, port: u16, seq: u32, error: &io::Error) -> io::Result<()> {
    let errno = error.raw_os_error().map(Errno::from_raw);
    match at {
        SocketAddr::V4(at) => tell_v4(at, port, seq, errno),
        SocketAddr::V6(at) => tell_v6(at, port, seq, errno),
    }
}

fn tell_v4(at: SocketAddrV4, port: u16, seq: u32, errno: Option<Errno>) -> io::Result<()> {
    let code = match errno {
        Some(Errno::ECONNREFUSED | Errno::ECONNRESET) => icmpv4::DestUnreachableHeader::Port,
        Some(Errno::ENETUNREACH | Errno::ENETDOWN) => icmpv4::DestUnreachableHeader::Network,
        Some(Errno::EHOSTDOWN) => icmpv4::DestUnreachableHeader::HostUnknown,
        Some(Errno::ENONET) => icmpv4::DestUnreachableHeader::Isolated,
        _ => icmpv4::DestUnreachableHeader::Host,
    };
    let transport = first_bytes(at.port(), port, seq);
    let quoted = Ipv4Header::new(
        transport.len() as u16, // eight bytes
        64,
        IpNumber::TCP,
        at.ip().octets(),
        Ipv4Addr::LOCALHOST.octets(),
    )
    .map_err(io::Error::other)?;
    let mut payload = quoted.to_bytes().to_vec();
    payload.extend(transport);
    let header = Icmpv4Header::with_checksum(Icmpv4Type::DestinationUnreachable(code), &payload);
    let mut message = header.to_bytes().to_vec();
    message.extend(payload);
    let socket = Socket::new(
        Domain::IPV4,
        Type::RAW.nonblocking(),
        Some(Protocol::ICMPV4),
    )?;
    socket.bind(&SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0).into())?;
    let to = SocketAddr::new((*at.ip()).into(), 0);
    socket.send_to(&message, &to.into()).map(|_| ())
}

fn tell_v6(at: SocketAddrV6, port: u16, seq: u32, errno: Option<Errno>) -> io::Result<()> {
    let code = match errno {
        Some(Errno::ECONNREFUSED | Errno::ECONNRESET) => icmpv6::DestUnreachableCode::Port,
        Some(Errno::ENETUNREACH | Errno::ENETDOWN) => icmpv6::DestUnreachableCode::NoRoute,
        Some(Errno::EACCES) => icmpv6::DestUnreachableCode::Prohibited,
        _ => icmpv6::DestUnreachableCode::Address,
    };
    let transport = first_bytes(at.port(), port, seq);
    let quoted = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: transport.len() as u16, // eight bytes
        next_header: IpNumber::TCP,
        hop_limit: 64,
        source: at.ip().octets(),
        destination: Ipv6Addr::LOCALHOST.octets(),
    };
    let mut payload = quoted.to_bytes().to_vec();
    payload.extend(transport);
    let header = Icmpv6Header::with_checksum(
        Icmpv6Type::DestinationUnreachable(code),
        Ipv6Addr::LOCALHOST.octets(),
        at.ip().octets(),
        &payload,
    )
    .map_err(io::Error::other)?;
    let mut message = header.to_bytes().to_vec();
    message.extend(payload);
    let socket = Socket::new(
        Domain::IPV6,
        Type::RAW.nonblocking(),
        Some(Protocol::ICMPV6),
    )?;
    socket.bind(&SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0).into())?;
    let to = SocketAddr::new((*at.ip()).into(), 0);
    socket.send_to(&message, &to.into()).map(|_| ())
}

/// The bytes of a segment that an ICMP error must quote (RFC 792): ports and sequence number.
fn first_bytes(source: u16, destination: u16, seq: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..2].copy_from_slice(&source.to_be_bytes());
    bytes[2..4].copy_from_slice(&destination.to_be_bytes());
    bytes[4..].copy_from_slice(&seq.to_be_bytes());
    bytes
}
