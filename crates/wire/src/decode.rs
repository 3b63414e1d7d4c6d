//! Turns bytes into messages, with the checks in the same order as in the programs.

use std::time::Duration;

use baton_abi::{
    LCCP_ACCOUNT, LCCP_ADOPT, LCCP_ALIVE, LCCP_CANDIDATE, LCCP_CLAIM, LCCP_FLAG_GONE,
    LCCP_FLAG_HEADERS, LCCP_FLAG_KEPT, LCCP_FORWARD, LCCP_HEAD, LCCP_HELLO, LCCP_LEADING,
    LCCP_LEADING_AT_DS, LCCP_MAX_BODY, LCCP_MAX_RESUME, LCCP_MOVED, LCCP_NONE, LCCP_NONE_PLAIN,
    LCCP_ORDER, LCCP_QUERY, LCCP_READY, LCCP_RECEIVED, LCCP_RECEPTOR_DAEMON, LCCP_RECEPTOR_DS,
    LCCP_REFUSED, LCCP_REPLY, LCCP_RESEND, LCCP_RESUME, LCCP_SYNC, LCCP_TAKEN, LCCP_TCBS,
    LCCP_VERSION, LCCP_YIELD, LccpHeader,
};
use zerocopy::FromBytes as _;

use crate::keys::tag::TAGGED_BYTES;
use crate::messages::tcb::tcb_from_wire;
use crate::{
    Account, Arrival, Candidate, Clock, Flow, Heads, Keys, Message, NodePair, Numbers, Order,
    Query, Ready, Refusal, Reject, Reply, Resume, ShortAddress, Taken, TcbPart, Tcbs, YieldAnswer,
    carried, keys::tag::tag, messages::body,
};

/// A message as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// The message itself.
    pub message: Message,
    /// The sender's clock when it sent the message. Of two messages from one node the one with the later clock counts.
    pub clock: Clock,
    /// The client's packet that it carries; empty for a message that carries none.
    pub packet: &'a [u8],
}

/// The message in `bytes`, which begin with the LCCP header and came from one node of this `pair` to the other. It must
/// be of this cluster and current: tagged under one of `keys`, and dated no further than `window` from the time at
/// which it `came`.
///
/// Flag bits, option bits and reserved bytes without a meaning are ignored, and so are bytes
/// behind the message.
///
/// # Errors
/// [`Reject`]: the first of these that fails: length, version, tag, clock, whether the sender may give the command,
/// command and values, carried packet.
pub fn decode<'a>(
    bytes: &'a [u8],
    pair: NodePair,
    keys: &Keys,
    came: impl Into<Arrival>,
    window: Duration,
) -> Result<Received<'a>, Reject> {
    let (tagged, _) = bytes
        .split_first_chunk::<TAGGED_BYTES>()
        .ok_or(Reject::Short)?;
    let (header, behind) = LccpHeader::read_from_prefix(bytes).map_err(|_| Reject::Short)?;
    if u32::from(header.version) != LCCP_VERSION {
        return Err(Reject::BadVersion);
    }
    let (body, rest) = split_body(&header, behind)?;
    // A plain comparison will do: a wrong tag is never answered, so a forger learns nothing from how long it took, and
    // 2^64 tags are left to try.
    let found = u64::from_be(header.be_tag);
    if !keys
        .all()
        .any(|key| tag(key, tagged, pair, behind) == found)
    {
        return Err(Reject::BadTag);
    }
    let clock = Clock::from_nanos(u64::from_be(header.be_clock));
    if clock.distance(came.into().nearest(clock)) > window {
        return Err(Reject::Stale);
    }
    if !keys.leads && is_leading(&header) {
        return Err(Reject::NotAllowed);
    }
    let message = message(&header, body)?;
    let packet = match message.carries() {
        Some(flow) => carried::packet(rest, flow)?,
        None => &[],
    };
    Ok(Received {
        message,
        clock,
        packet,
    })
}

/// Whether a node with only its own keys may not send this message.
fn is_leading(header: &LccpHeader) -> bool {
    let bit = 1u32.checked_shl(header.command.into()).unwrap_or(0);
    let is_for_ds = u32::from(header.receptor) == LCCP_RECEPTOR_DS;
    bit & LCCP_LEADING != 0 && (is_for_ds || bit & LCCP_LEADING_AT_DS == 0)
}

/// The sender's clock in a message's header. It can only be trusted if the tag is right: if [`decode`] accepted the
/// message or returned [`Reject::Stale`].
pub fn clock_of(bytes: &[u8]) -> Option<Clock> {
    let (header, _) = LccpHeader::read_from_prefix(bytes).ok()?;
    Some(Clock::from_nanos(u64::from_be(header.be_clock)))
}

/// The version of LCCP that a message names. Nothing proves it: this version does not know where another version has
/// its tag.
pub fn version_of(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied()
}

fn split_body<'a>(header: &LccpHeader, rest: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), Reject> {
    let length = u16::from_be(header.be_body_length);
    let most = match u32::from(header.command) {
        LCCP_RESUME | LCCP_HEAD => LCCP_MAX_RESUME,
        _ => LCCP_MAX_BODY,
    };
    if u32::from(length) > most {
        return Err(Reject::Short);
    }
    rest.split_at_checked(length.into()).ok_or(Reject::Short)
}

fn message(header: &LccpHeader, body: &[u8]) -> Result<Message, Reject> {
    let message = match u32::from(header.command) {
        LCCP_ADOPT if u32::from(header.flags) & LCCP_FLAG_KEPT != 0 => Message::AdoptAgain {
            flow: flow(header)?,
            tcb: TcbPart {
                resume: 0,
                ..tcb(header)?
            },
            asker: ShortAddress::from_word(header.be_data),
            // The cast loses nothing: the address is in the lower half.
            keeper: ShortAddress::from_word((u64::from_be(header.tcb.be_resume) as u32).to_be()),
        },
        LCCP_ADOPT => Message::Adopt {
            flow: flow(header)?,
            tcb: tcb(header)?,
            asker: ShortAddress::from_word(header.be_data),
        },
        LCCP_REFUSED => Message::Refused {
            flow: flow(header)?,
            tcb: tcb(header)?,
            refusal: Refusal::from_number(u32::from_be(header.be_data)).unwrap_or(Refusal::Other),
        },
        LCCP_FORWARD if u32::from(header.flags) & LCCP_FLAG_KEPT != 0 => Message::ForwardKept {
            flow: flow(header)?,
            // Without a keeper the answer would have no receiver.
            keeper: ShortAddress::from_word(header.be_data).ok_or(Reject::Unknown)?,
            attempt: header.tcb.attempt,
        },
        LCCP_RECEIVED => Message::Received {
            flow: flow(header)?,
            end: (u32::from(header.flags) & LCCP_FLAG_GONE == 0)
                .then_some(u32::from_be(header.be_data)),
        },
        LCCP_FORWARD => Message::Forward {
            flow: flow(header)?,
            next: ShortAddress::from_word(header.be_data),
            attempt: header.tcb.attempt,
        },
        LCCP_NONE => Message::None {
            flow: flow(header)?,
            attempt: header.tcb.attempt,
            is_plain: u32::from_be(header.be_data) == LCCP_NONE_PLAIN,
        },
        LCCP_CLAIM => Message::Claim {
            flow: flow(header)?,
            // Without an asker the answer would have no receiver.
            asker: ShortAddress::from_word(header.be_data).ok_or(Reject::Unknown)?,
            attempt: header.tcb.attempt,
            is_cut: u32::from(header.flags) & LCCP_FLAG_HEADERS != 0,
        },
        LCCP_MOVED => Message::Moved {
            flow: flow(header)?,
            tcb: tcb(header)?,
            next: ShortAddress::from_word(header.be_data),
            is_cut: u32::from(header.flags) & LCCP_FLAG_HEADERS != 0,
        },
        LCCP_HELLO => Message::Hello(body::read(body).ok_or(Reject::Short)?),
        LCCP_SYNC => Message::Sync {
            last: u16::try_from(u32::from_be(header.be_data)).map_err(|_| Reject::Unknown)?,
        },
        LCCP_RESEND => Message::Resend(Numbers::read(body).ok_or(Reject::Unknown)?),
        LCCP_QUERY => Message::Query(Query::read(flow(header)?, body).ok_or(Reject::Short)?),
        LCCP_REPLY => Message::Reply(Reply::read(flow(header)?, body).ok_or(Reject::Short)?),
        LCCP_TCBS => Message::Tcbs(Tcbs::read(body).ok_or(Reject::Unknown)?),
        LCCP_TAKEN => Message::Taken(Taken::read(body).ok_or(Reject::Unknown)?),
        LCCP_CANDIDATE => Message::Candidate(Candidate::read(body).ok_or(Reject::Unknown)?),
        LCCP_ORDER => Message::Order(Order::read(body).ok_or(Reject::Unknown)?),
        LCCP_ACCOUNT => Message::Account(Account::read(body).ok_or(Reject::Unknown)?),
        LCCP_ALIVE => Message::Alive {
            turned: u32::from(header.receptor) == LCCP_RECEPTOR_DAEMON,
            dead: header.be_data != 0,
        },
        LCCP_YIELD if u32::from(header.receptor) == LCCP_RECEPTOR_DAEMON => Message::Yielded {
            flow: flow(header)?,
            answer: YieldAnswer::from_number(u32::from_be(header.be_data))
                .ok_or(Reject::Unknown)?,
        },
        LCCP_YIELD => Message::Yield {
            flow: flow(header)?,
            next: ShortAddress::from_word(header.be_data),
        },
        LCCP_RESUME => Message::Resume(Resume::read(flow(header)?, body).ok_or(Reject::Short)?),
        LCCP_READY => Message::Ready(Ready::read(flow(header)?, body).ok_or(Reject::Short)?),
        LCCP_HEAD => Message::Heads(Heads::read(body).ok_or(Reject::Unknown)?),
        _ => return Err(Reject::Unknown),
    };
    let body_without_use = message.carries().is_some() && !body.is_empty();
    if u32::from(header.receptor) != message.receptor().number() || body_without_use {
        return Err(Reject::Unknown);
    }
    Ok(message)
}

/// The flow in a header. Two ends of different IP versions are no flow, so no packet can belong to it.
fn flow(header: &LccpHeader) -> Result<Flow, Reject> {
    header.flow.try_into().map_err(|_| Reject::Mismatch)
}

fn tcb(header: &LccpHeader) -> Result<TcbPart, Reject> {
    tcb_from_wire(&header.tcb).ok_or(Reject::Unknown)
}
