//! Turns messages into bytes.

use baton_abi::{
    LCCP_ACCOUNT, LCCP_ADOPT, LCCP_ALIVE, LCCP_CANDIDATE, LCCP_CLAIM, LCCP_FLAG_GONE,
    LCCP_FLAG_HEADERS, LCCP_FLAG_KEPT, LCCP_FORWARD, LCCP_HEAD, LCCP_HELLO, LCCP_MOVED, LCCP_NONE,
    LCCP_NONE_PLAIN, LCCP_ORDER, LCCP_QUERY, LCCP_READY, LCCP_RECEIVED, LCCP_REFUSED, LCCP_REPLY,
    LCCP_RESEND, LCCP_RESUME, LCCP_SYNC, LCCP_TAKEN, LCCP_TCBS, LCCP_VERSION, LCCP_YIELD,
    LccpHeader, LccpTcb,
};
use zerocopy::IntoBytes as _;

use crate::keys::tag::{TAG_BYTES, TAGGED_BYTES};
use crate::messages::{body, numbered::byte};
use crate::{Clock, Flow, LccpKey, Message, NodePair, ShortAddress, keys::tag::tag};

/// The bytes of `message` from one node of the `pair` to the other, tagged under `key` and dated `clock`. Behind the
/// header comes the body or, if the message has no body, the client's `packet`.
pub fn encode(
    message: &Message,
    packet: &[u8],
    clock: Clock,
    key: &LccpKey,
    pair: NodePair,
) -> Vec<u8> {
    let (fields, body) = parts(message);
    let header = LccpHeader {
        version: const { byte(LCCP_VERSION) },
        receptor: byte(message.receptor().number()),
        // No truncation: the body is at most LCCP_MAX_RESUME, 1400.
        be_body_length: (body.len() as u16).to_be(),
        be_clock: clock.as_nanos().to_be(),
        ..fields
    };

    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(packet);
    seal(&mut bytes, key, pair);
    bytes
}

/// The header with the fields that depend on the message, all others being zero, and the body.
fn parts(message: &Message) -> (LccpHeader, Vec<u8>) {
    match *message {
        Message::Adopt { flow, tcb, asker } => bare(LccpHeader {
            tcb: tcb.into(),
            be_data: word(asker),
            ..about(flow, LCCP_ADOPT)
        }),
        Message::AdoptAgain {
            flow,
            tcb,
            asker,
            keeper,
        } => bare(LccpHeader {
            flags: const { byte(LCCP_FLAG_KEPT) },
            tcb: LccpTcb {
                be_resume: u64::from(u32::from_be(word(keeper))).to_be(),
                ..tcb.into()
            },
            be_data: word(asker),
            ..about(flow, LCCP_ADOPT)
        }),
        Message::Refused { flow, tcb, refusal } => bare(LccpHeader {
            tcb: tcb.into(),
            be_data: refusal.number().to_be(),
            ..about(flow, LCCP_REFUSED)
        }),
        Message::ForwardKept {
            flow,
            keeper,
            attempt,
        } => bare(LccpHeader {
            flags: const { byte(LCCP_FLAG_KEPT) },
            tcb: only(attempt),
            be_data: keeper.word(),
            ..about(flow, LCCP_FORWARD)
        }),
        Message::Received { flow, end } => bare(LccpHeader {
            flags: flag(end.is_none(), LCCP_FLAG_GONE),
            be_data: end.unwrap_or_default().to_be(),
            ..about(flow, LCCP_RECEIVED)
        }),
        Message::Forward {
            flow,
            next,
            attempt,
        } => bare(LccpHeader {
            tcb: only(attempt),
            be_data: word(next),
            ..about(flow, LCCP_FORWARD)
        }),
        Message::None {
            flow,
            attempt,
            is_plain,
        } => bare(LccpHeader {
            tcb: only(attempt),
            be_data: if is_plain { LCCP_NONE_PLAIN.to_be() } else { 0 },
            ..about(flow, LCCP_NONE)
        }),
        Message::Claim {
            flow,
            asker,
            attempt,
            is_cut,
        } => bare(LccpHeader {
            flags: flag(is_cut, LCCP_FLAG_HEADERS),
            tcb: only(attempt),
            be_data: asker.word(),
            ..about(flow, LCCP_CLAIM)
        }),
        Message::Moved {
            flow,
            tcb,
            next,
            is_cut,
        } => bare(LccpHeader {
            flags: flag(is_cut, LCCP_FLAG_HEADERS),
            tcb: tcb.into(),
            be_data: word(next),
            ..about(flow, LCCP_MOVED)
        }),
        Message::Sync { last } => bare(LccpHeader {
            be_data: u32::from(last).to_be(),
            ..only_command(LCCP_SYNC)
        }),
        Message::Yield { flow, next } => bare(LccpHeader {
            be_data: word(next),
            ..about(flow, LCCP_YIELD)
        }),
        Message::Yielded { flow, answer } => bare(LccpHeader {
            be_data: answer.number().to_be(),
            ..about(flow, LCCP_YIELD)
        }),
        Message::Alive { dead, .. } => bare(LccpHeader {
            be_data: u32::from(dead).to_be(),
            ..only_command(LCCP_ALIVE)
        }),
        Message::Hello(ref hello) => (only_command(LCCP_HELLO), body::write(hello)),
        Message::Resend(ref numbers) => (only_command(LCCP_RESEND), numbers.write()),
        Message::Query(ref query) => (about(query.flow(), LCCP_QUERY), query.body()),
        Message::Reply(ref reply) => (about(reply.flow, LCCP_REPLY), reply.body()),
        Message::Tcbs(ref batch) => (only_command(LCCP_TCBS), batch.write()),
        Message::Taken(ref taken) => (only_command(LCCP_TAKEN), taken.write()),
        Message::Candidate(ref candidate) => (only_command(LCCP_CANDIDATE), candidate.write()),
        Message::Order(ref order) => (only_command(LCCP_ORDER), order.body()),
        Message::Account(ref account) => (only_command(LCCP_ACCOUNT), account.body()),
        Message::Resume(ref resume) => (about(resume.flow(), LCCP_RESUME), resume.body()),
        Message::Heads(ref heads) => (only_command(LCCP_HEAD), heads.write()),
        Message::Ready(ref ready) => (about(ready.flow, LCCP_READY), ready.body()),
    }
}

fn only_command(command: u32) -> LccpHeader {
    LccpHeader {
        command: byte(command),
        ..LccpHeader::default()
    }
}

fn about(flow: Flow, command: u32) -> LccpHeader {
    LccpHeader {
        flow: flow.into(),
        ..only_command(command)
    }
}

/// A message without a body.
fn bare(header: LccpHeader) -> (LccpHeader, Vec<u8>) {
    (header, Vec::new())
}

fn flag(is_set: bool, bit: u32) -> u8 {
    if is_set { byte(bit) } else { 0 }
}

fn word(address: Option<ShortAddress>) -> u32 {
    address.map_or(0, ShortAddress::word)
}

/// The TCB part of a message that makes no socket, with only this attempt in it.
fn only(attempt: u8) -> LccpTcb {
    LccpTcb {
        attempt,
        ..LccpTcb::default()
    }
}

fn seal(message: &mut [u8], key: &LccpKey, pair: NodePair) {
    if let Some((tagged, rest)) = message.split_first_chunk_mut::<TAGGED_BYTES>()
        && let Some((place, rest)) = rest.split_first_chunk_mut::<TAG_BYTES>()
    {
        *place = tag(key, tagged, pair, rest).to_be_bytes();
    }
}
