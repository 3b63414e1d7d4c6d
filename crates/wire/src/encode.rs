//! Turns messages into bytes.

use baton_abi::{
    LCCP_ACCOUNT, LCCP_ADOPT, LCCP_AGAIN, LCCP_ALIVE, LCCP_CANDIDATE, LCCP_CLAIM, LCCP_FLAG_GONE,
    LCCP_FLAG_HEADERS, LCCP_FLAG_KEPT, LCCP_FORWARD, LCCP_HEAD, LCCP_HELLO, LCCP_MOVED, LCCP_NONE,
    LCCP_NONE_PLAIN, LCCP_ORDER, LCCP_QUERY, LCCP_READY, LCCP_RECEIVED, LCCP_REFUSED, LCCP_REPLY,
    LCCP_RESUME, LCCP_SYNC, LCCP_TAKEN, LCCP_TCBS, LCCP_VERSION, LCCP_YIELD, LccpHeader, LccpTcb,
};
use zerocopy::IntoBytes as _;

use crate::keys::tag::{TAG_BYTES, TAGGED_BYTES};
use crate::{
    Clock, LccpKey, Message, NodePair, Ready, Reply, ShortAddress, keys::tag::tag, messages::body,
};

/// The bytes of `message` from one node of the `pair` to the other, tagged under `key` and dated `clock`. Behind the
/// header comes the body or, if the message has no body, the client's `packet`.
pub fn encode(
    message: &Message,
    packet: &[u8],
    clock: Clock,
    key: &LccpKey,
    pair: NodePair,
) -> Vec<u8> {
    let body = match message {
        Message::Hello(hello) => body::write(hello),
        Message::Again(numbers) => numbers.write(),
        Message::Query(query) => query.body(),
        Message::Reply(reply) => reply.body(),
        Message::Tcbs(batch) => batch.write(),
        Message::Taken(taken) => taken.write(),
        Message::Candidate(candidate) => candidate.write(),
        Message::Order(order) => order.body(),
        Message::Account(account) => account.body(),
        Message::Resume(resume) => resume.body(),
        Message::Ready(ready) => ready.body(),
        Message::Heads(heads) => heads.write(),
        Message::Adopt { .. }
        | Message::Refused { .. }
        | Message::AdoptAgain { .. }
        | Message::ForwardKept { .. }
        | Message::Received { .. }
        | Message::Forward { .. }
        | Message::None { .. }
        | Message::Claim { .. }
        | Message::Moved { .. }
        | Message::Sync { .. }
        | Message::Yield { .. }
        | Message::Yielded { .. }
        | Message::Alive { .. } => Vec::new(),
    };
    let header = LccpHeader {
        version: const { byte(LCCP_VERSION) },
        receptor: byte(message.receptor().number()),
        // No truncation: the body is at most LCCP_MAX_RESUME, 1400.
        be_body_length: (body.len() as u16).to_be(),
        be_clock: clock.as_nanos().to_be(),
        ..fields(message)
    };

    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(&body);
    bytes.extend_from_slice(packet);
    seal(&mut bytes, key, pair);
    bytes
}

/// The flags that say whether a packet comes without its data.
fn cut(is_cut: bool) -> u8 {
    if is_cut {
        const { byte(LCCP_FLAG_HEADERS) }
    } else {
        0
    }
}

/// The header with the fields that depend on the message; all other fields are zero.
fn fields(message: &Message) -> LccpHeader {
    let blank = LccpHeader::default();
    match *message {
        Message::Adopt { flow, tcb, asker } => LccpHeader {
            command: const { byte(LCCP_ADOPT) },
            flow: flow.into(),
            tcb: tcb.into(),
            be_data: word(asker),
            ..blank
        },
        Message::AdoptAgain {
            flow,
            tcb,
            asker,
            keeper,
        } => LccpHeader {
            command: const { byte(LCCP_ADOPT) },
            flags: const { byte(LCCP_FLAG_KEPT) },
            flow: flow.into(),
            tcb: LccpTcb {
                be_resume: u64::from(u32::from_be(word(keeper))).to_be(),
                ..tcb.into()
            },
            be_data: word(asker),
            ..blank
        },
        Message::Refused { flow, tcb, refusal } => LccpHeader {
            command: const { byte(LCCP_REFUSED) },
            flow: flow.into(),
            tcb: tcb.into(),
            be_data: refusal.number().to_be(),
            ..blank
        },
        Message::ForwardKept {
            flow,
            keeper,
            attempt,
        } => LccpHeader {
            command: const { byte(LCCP_FORWARD) },
            flags: const { byte(LCCP_FLAG_KEPT) },
            flow: flow.into(),
            tcb: only(attempt),
            be_data: word(Some(keeper)),
            ..blank
        },
        Message::Received { flow, end } => LccpHeader {
            command: const { byte(LCCP_RECEIVED) },
            flags: if end.is_none() {
                const { byte(LCCP_FLAG_GONE) }
            } else {
                0
            },
            flow: flow.into(),
            be_data: end.unwrap_or_default().to_be(),
            ..blank
        },
        Message::Forward {
            flow,
            next,
            attempt,
        } => LccpHeader {
            command: const { byte(LCCP_FORWARD) },
            flow: flow.into(),
            tcb: only(attempt),
            be_data: word(next),
            ..blank
        },
        Message::None {
            flow,
            attempt,
            is_plain,
        } => LccpHeader {
            command: const { byte(LCCP_NONE) },
            flow: flow.into(),
            tcb: only(attempt),
            be_data: if is_plain { LCCP_NONE_PLAIN.to_be() } else { 0 },
            ..blank
        },
        Message::Claim {
            flow,
            asker,
            attempt,
            is_cut,
        } => LccpHeader {
            command: const { byte(LCCP_CLAIM) },
            flags: cut(is_cut),
            flow: flow.into(),
            tcb: only(attempt),
            be_data: asker.word(),
            ..blank
        },
        Message::Moved {
            flow,
            tcb,
            next,
            is_cut,
        } => LccpHeader {
            command: const { byte(LCCP_MOVED) },
            flags: cut(is_cut),
            flow: flow.into(),
            tcb: tcb.into(),
            be_data: next.map_or(0, ShortAddress::word),
            ..blank
        },
        Message::Hello(_) => LccpHeader {
            command: const { byte(LCCP_HELLO) },
            ..blank
        },
        Message::Sync { last } => LccpHeader {
            command: const { byte(LCCP_SYNC) },
            be_data: u32::from(last).to_be(),
            ..blank
        },
        Message::Again(_) => LccpHeader {
            command: const { byte(LCCP_AGAIN) },
            ..blank
        },
        Message::Query(ref query) => LccpHeader {
            command: const { byte(LCCP_QUERY) },
            flow: query.flow().into(),
            ..blank
        },
        Message::Reply(Reply { flow, .. }) => LccpHeader {
            command: const { byte(LCCP_REPLY) },
            flow: flow.into(),
            ..blank
        },
        Message::Tcbs(_) => LccpHeader {
            command: const { byte(LCCP_TCBS) },
            ..blank
        },
        Message::Taken(_) => LccpHeader {
            command: const { byte(LCCP_TAKEN) },
            ..blank
        },
        Message::Candidate(_) => LccpHeader {
            command: const { byte(LCCP_CANDIDATE) },
            ..blank
        },
        Message::Order(_) => LccpHeader {
            command: const { byte(LCCP_ORDER) },
            ..blank
        },
        Message::Account(_) => LccpHeader {
            command: const { byte(LCCP_ACCOUNT) },
            ..blank
        },
        Message::Yield { flow, next } => LccpHeader {
            command: const { byte(LCCP_YIELD) },
            flow: flow.into(),
            be_data: word(next),
            ..blank
        },
        Message::Yielded { flow, answer } => LccpHeader {
            command: const { byte(LCCP_YIELD) },
            flow: flow.into(),
            be_data: answer.number().to_be(),
            ..blank
        },
        Message::Alive { dead, .. } => LccpHeader {
            command: const { byte(LCCP_ALIVE) },
            be_data: u32::from(dead).to_be(),
            ..blank
        },
        Message::Resume(ref resume) => LccpHeader {
            command: const { byte(LCCP_RESUME) },
            flow: resume.flow().into(),
            ..blank
        },
        Message::Heads(_) => LccpHeader {
            command: const { byte(LCCP_HEAD) },
            ..blank
        },
        Message::Ready(Ready { flow, .. }) => LccpHeader {
            command: const { byte(LCCP_READY) },
            flow: flow.into(),
            ..blank
        },
    }
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

/// A constant of `bpf/abi/lccp.h` that is one byte in a message.
pub(crate) const fn byte(constant: u32) -> u8 {
    assert!(constant <= 0xff);
    constant as u8
}
