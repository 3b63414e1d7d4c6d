//! LCCP messages that no node has sent.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use baton_wire::{
    Clock, ClusterKey, Flow, Hello, Incarnation, LccpKey, Message, NodePair, Order, Permille,
    Refusal, ShortAddress, TcbPart, Verb, encode, tag,
};
use etherparse::TcpHeader;

use super::target::Target;
use crate::frames::{Frame, IP_AT};
use crate::world::CLUSTER;

const PROTOCOL: u8 = 253;
/// The command's offset in `struct lccp_header` (bpf/abi/lccp.h).
const COMMAND_AT: usize = 2;
/// A version of LCCP that no release has.
const OTHER_VERSION: u8 = 253;
const TAG_AT: usize = 72;
const HEADER: usize = 80;
const CLIENT_PORT: u16 = 40_000;
const REQUEST: &[u8] = b"GET /whoami HTTP/1.1\r\nHost: cluster\r\n\r\n";

pub(super) fn forged(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let other: ClusterKey = "5a".repeat(32).parse()?;
    let key = other.pair(target.sender, target.node);
    let flow = flow(target, CLIENT_PORT)?;
    let tcb = tcb();
    let hello = Hello::new(
        Incarnation::started_at(now()),
        Permille::try_from(0)?,
        Vec::new(),
    )?;
    let next = ShortAddress::try_from(IpAddr::V4(target.node))?;
    let messages = [
        Message::Adopt {
            flow,
            tcb,
            asker: None,
        },
        Message::Refused {
            flow,
            tcb,
            refusal: Refusal::NoListener,
        },
        Message::Forward {
            flow,
            next: Some(next),
            attempt: 0,
        },
        Message::None {
            flow,
            attempt: 0,
            is_plain: false,
        },
        Message::Hello(hello),
    ];
    for message in messages {
        add(target, frames, &message, &key)?;
    }
    Ok(())
}

/// Adds a heartbeat under another cluster's key.
pub(super) fn forged_hello(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let other: ClusterKey = "5a".repeat(32).parse()?;
    let life = Incarnation::started_at(now());
    let hello = Hello::new(life, Permille::try_from(0)?, Vec::new())?;
    let key = other.pair(target.sender, target.node);
    add(target, frames, &Message::Hello(hello), &key)
}

/// Adds a message under this key, with a client's packet if its command carries one.
fn add(target: &Target, frames: &mut Vec<Frame>, message: &Message, key: &LccpKey) -> Result<()> {
    let packet = match message.carries() {
        Some(_) => packet(target, CLIENT_PORT)?,
        None => Vec::new(),
    };
    let payload = encode(message, &packet, now(), key, pair(target));
    frames.push(lccp(target, &payload)?);
    Ok(())
}

pub(super) fn truncated(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let payload = payload(target, now(), CLIENT_PORT)?;
    for length in 0..payload.len() {
        frames.push(lccp(target, &payload[..length])?);
    }
    Ok(())
}

pub(super) fn version(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let hello = hello(target, now())?;
    for mut payload in [payload(target, now(), CLIENT_PORT)?, hello] {
        payload[0] = OTHER_VERSION;
        frames.push(lccp(target, &payload)?);
    }
    Ok(())
}

pub(super) fn stale(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let hour = Duration::from_secs(3600).as_nanos() as u64;
    for clock in [
        now().as_nanos() - hour,
        now().as_nanos() + hour,
        0,
        u64::MAX,
    ] {
        frames.push(lccp(
            target,
            &payload(target, Clock::from_nanos(clock), CLIENT_PORT)?,
        )?);
    }
    Ok(())
}

pub(super) fn behind(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let hour = Duration::from_secs(3600).as_nanos() as u64;
    let clock = Clock::from_nanos(now().as_nanos() - hour);
    frames.push(lccp(target, &hello(target, clock)?)?);
    frames.push(lccp(target, &payload(target, clock, CLIENT_PORT)?)?);
    Ok(())
}

/// Encodes a heartbeat like that of a node without services.
fn hello(target: &Target, clock: Clock) -> Result<Vec<u8>> {
    let life = Incarnation::started_at(clock);
    let hello = Hello::new(life, Permille::try_from(0)?, Vec::new())?;
    Ok(encode(
        &Message::Hello(hello),
        &[],
        clock,
        &target.key,
        pair(target),
    ))
}

pub(super) fn mismatch(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    frames.push(lccp(target, &payload(target, now(), CLIENT_PORT + 1)?)?);
    Ok(())
}

pub(super) fn command(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    for command in [0, 8, 77, 255] {
        let mut payload = payload(target, now(), CLIENT_PORT)?;
        payload[COMMAND_AT] = command;
        let (header, rest) = payload
            .split_first_chunk_mut::<TAG_AT>()
            .context("a header is longer")?;
        let (place, rest) = rest.split_at_mut(HEADER - TAG_AT);
        place.copy_from_slice(&tag(&target.key, header, pair(target), rest).to_be_bytes());
        frames.push(lccp(target, &payload)?);
    }
    Ok(())
}

/// Adds the commands by which programs and daemons order a data server to do something with connections.
pub(super) fn commands(target: &Target, frames: &mut Vec<Frame>) -> Result<()> {
    let flow = flow(target, CLIENT_PORT)?;
    let next = ShortAddress::try_from(IpAddr::V4(target.sender))?;
    let order = Order {
        number: now().as_nanos(),
        verb: Verb::Drain,
    };
    let messages = [
        Message::Yield {
            flow,
            next: Some(next),
        },
        Message::Order(order),
    ];
    for message in messages {
        add(target, frames, &message, &target.key)?;
    }
    Ok(())
}

/// Encodes a message that the target accepts, under the right key: ADOPT for a data server, REFUSED for a connection
/// server. `port` is the client's port in the packet inside; the header always says [`CLIENT_PORT`].
fn payload(target: &Target, clock: Clock, port: u16) -> Result<Vec<u8>> {
    let (flow, tcb) = (flow(target, CLIENT_PORT)?, tcb());
    let message = match target.is_cs {
        true => Message::Refused {
            flow,
            tcb,
            refusal: Refusal::NoListener,
        },
        false => Message::Adopt {
            flow,
            tcb,
            asker: None,
        },
    };
    let packet = packet(target, port)?;
    Ok(encode(&message, &packet, clock, &target.key, pair(target)))
}

/// The sender and the receiver of messages, as the IP header names them.
fn pair(target: &Target) -> NodePair {
    NodePair {
        from: target.sender,
        to: target.node,
    }
}

fn lccp(target: &Target, payload: &[u8]) -> Result<Frame> {
    target.way.ip(target.sender, target.node, PROTOCOL, payload)
}

/// A request as the client would send it, from the IP header on.
fn packet(target: &Target, port: u16) -> Result<Vec<u8>> {
    let header = TcpHeader {
        sequence_number: 1000,
        acknowledgment_number: 2000,
        ack: true,
        ..TcpHeader::default()
    };
    let from = std::net::SocketAddrV4::new(target.client, port);
    let frame = target.way.tcp(
        from,
        std::net::SocketAddrV4::new(CLUSTER, 80),
        header,
        REQUEST,
    )?;
    Ok(frame[IP_AT..].to_vec())
}

fn flow(target: &Target, port: u16) -> Result<Flow> {
    Ok(Flow::new(
        SocketAddr::from((target.client, port)),
        SocketAddr::from((CLUSTER, 80)),
    )?)
}

fn tcb() -> TcbPart {
    TcbPart {
        mss: NonZeroU16::MAX,
        scales: None,
        sack: true,
        aware: false,
        attempt: 0,
        cwnd: 0,
        resume: 0,
    }
}

fn now() -> Clock {
    SystemTime::now().into()
}
