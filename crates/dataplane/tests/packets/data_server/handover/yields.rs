//! YIELD: a response goes on at another data server once nothing of it is on its way. Until then its socket is shown a
//! closed window.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    thread,
    time::{Duration, Instant},
};

use baton_abi::{DataServer, LCCP_ADOPT, LCCP_FLAG_RESUME};
use baton_wire::{Message, YieldAnswer};

use crate::{data_server::door::owner::LET_IN, prelude::*};

/// The program waits for so long until what was on its way before has come.
const WAITS: Duration = Duration::from_millis(10);
/// More than that, with room for a busy machine.
const SETTLED: Duration = Duration::from_millis(20);
/// `MOVED_BEHIND` of bpf/abi/lccp.h.
const MOVED_BEHIND: u64 = 1;
const CLOSED: Counted<'_> = &[("ds_forwarded", 1), ("ds_yield_closed", 1)];

/// Returns the ACK that the connection server's daemon makes.
fn made(live: &Live) -> Segment {
    live.ack().options([1; 12])
}

fn say(live: &Live, next: Option<u16>) {
    let next = next.map(|next| short(ds(next)));
    let flow = flow(&live.client);
    send(&live.node, &Message::Yield { flow, next }, &made(live));
}

/// Checks that the next packet on the wire is an ADOPT for the agent of data server 1, around this packet, and that the
/// socket here has ended.
#[track_caller]
fn goes(live: &Live, ack: &Segment) {
    let packet = live.wire.next();
    assert_eq!(packet.ethernet.destination, ds_mac(1), "{packet:?}");
    assert_eq!((packet.from(), packet.to()), (ds(0), ds(1)));
    let said = [LCCP_ADOPT, LCCP_FLAG_RESUME].map(|word| word as u8);
    assert_eq!(packet.body[2..4], said);
    assert_eq!(packet.body[80..], ack.packet());
    let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[track_caller]
fn answers(live: &Live, answer: YieldAnswer) {
    let message = live.message_to(CS, CS_MAC);
    let flow = flow(&live.client);
    assert_eq!(message.message, Message::Yielded { flow, answer });
}

/// If nothing is on its way, the first YIELD closes the window, and the second finds it closed: the connection goes.
/// The ACK that goes with it has the client's own window and timestamps.
#[test]
fn a_response_that_pauses_goes_with_the_second_message() {
    let _host = own_host();
    let live = Live::answering();
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
    thread::sleep(SETTLED);
    say(&live, Some(1));
    live.expect(&[("ds_yielded", 1)]);
    goes(&live, &live.ack());
    live.nothing_sent();
    // The connection has gone, and the answer says so.
    say(&live, Some(1));
    live.expect(&[("ds_yield_gone", 1)]);
    answers(&live, YieldAnswer::Gone);
}

/// What the server writes while the connection yields is never sent. So nothing beyond what the next socket begins with
/// can be acknowledged.
#[test]
fn nothing_new_is_sent_from_then_on() {
    let _host = own_host();
    let mut live = Live::answering();
    let before = live.ack();
    live.write();
    let after = Segment {
        ack: before.ack.wrapping_add(live.answer.len() as u32),
        ..before.clone()
    };
    // Something is on its way, so the client's own acknowledgement closes the window.
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1)]);
    live.forwards(&before, CLOSED);
    (&live.stream).write_all(live.answer).unwrap();
    thread::sleep(SETTLED);
    live.forwards(&after, &[("ds_yielded", 1)]);
    goes(&live, &after);
    live.nothing_sent();
}

/// While some of what was sent is on its way, the connection does not go, however long that takes.
#[test]
fn what_is_on_its_way_keeps_it() {
    let _host = own_host();
    let mut live = Live::answering();
    let before = live.ack();
    live.write();
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1)]);
    thread::sleep(SETTLED);
    say(&live, Some(1));
    thread::sleep(SETTLED);
    live.expect(&[]);
    live.forwards(&before, CLOSED);
}

/// A packet that the connection server sent plain, before it knew of the YIELD, may open the window, so the wait begins
/// again. A try that takes longer than this wait shows nothing and is made again.
#[test]
fn it_waits_after_a_packet_that_came_straight() {
    let _host = own_host();
    loop {
        let live = Live::answering();
        say(&live, Some(1));
        live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
        thread::sleep(SETTLED);
        let begins = Instant::now();
        send_plain(&live.ack());
        live.expect(&[("ds_delivered", 1)]);
        say(&live, Some(1));
        if begins.elapsed() >= WAITS {
            continue;
        }
        live.expect(&[("ds_yield_closed", 1)]);
        thread::sleep(SETTLED);
        say(&live, Some(1));
        live.expect(&[("ds_yielded", 1)]);
        goes(&live, &live.ack());
        return;
    }
}

/// Checks that the connection server is told that data server 1 has the connection, and that this packet lies behind what
/// the connection went with; and that the packet goes there in FORWARD.
#[track_caller]
fn follows_behind(live: &Live, packet: &Segment) {
    live.expect(&[("ds_door_followed", 1)]);
    let told = live.message_to(CS, CS_MAC);
    let Message::Moved {
        flow: of,
        tcb,
        next,
        ..
    } = told.message
    else {
        panic!("{told:?}");
    };
    let next_server = Some(short(ds(1)));
    assert_eq!((of, next), (flow(&live.client), next_server));
    let went_with = packet.seq.wrapping_sub(1);
    let behind = MOVED_BEHIND << 32 | u64::from(went_with);
    assert_eq!(tcb.resume, behind);
    let follows = live.message_to(ds(1), ds_mac(1));
    let forward = Message::Forward {
        flow: flow(&live.client),
        next: None,
        attempt: 1,
    };
    assert_eq!(
        (follows.message, follows.packet),
        (forward, packet.packet())
    );
}

/// No request goes with a response, so none is sent on as ADOPT: the other data server has the connection in the middle
/// of the response, and the next request waits there for the response's end. It is sent on in FORWARD, whoever has sent
/// it here and however often it comes.
#[test]
fn the_next_request_follows_and_is_not_adopted() {
    let _host = own_host();
    for by_client in [false, true] {
        let live = Live::answering();
        say(&live, Some(1));
        live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
        thread::sleep(SETTLED);
        if by_client {
            live.forward(&live.ack());
        } else {
            say(&live, Some(1));
        }
        live.expect(&[("ds_yielded", 1)]);
        goes(&live, &live.ack());
        let request = live.request();
        for _ in 0..2 {
            live.forward(&request);
            follows_behind(&live, &request);
            send_plain(&request);
            follows_behind(&live, &request);
        }
        live.forward(&live.ack());
        follows_behind(&live, &live.ack());
        live.nothing_sent();
    }
}

#[test]
fn told_to_stay_it_goes_on() {
    let _host = own_host();
    let mut live = Live::answering();
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
    say(&live, None);
    live.expect(&[("ds_yield_stopped", 1)]);
    answers(&live, YieldAnswer::Kept);
    live.write();
    // A connection that was not told to go answers the same.
    say(&live, None);
    live.expect(&[("ds_yield_stopped", 1)]);
    answers(&live, YieldAnswer::Kept);
}

/// The client's next request ends the yielding: it shows that the response was whole.
#[test]
fn a_request_ends_it() {
    let _host = own_host();
    let mut live = Live::answering();
    say(&live, Some(1));
    live.expect(&[("ds_yielding", 1), ("ds_yield_closed", 1)]);
    live.forwards(
        &live.request(),
        &[LET_IN, &[("ds_yield_ended", 1)]].concat(),
    );
    expect_bytes(&live.stream, GET);
    live.write();
}

#[test]
fn what_cannot_go_stays() {
    let _host = own_host();
    let live = Live::answering();
    let message = |next| Message::Yield {
        flow: flow(&live.client),
        next: Some(short(ds(next))),
    };
    // The client has sent more than the connection server knows of, or less.
    for seq in [1, u32::MAX] {
        let mut other = made(&live);
        other.seq = other.seq.wrapping_add(seq);
        send(&live.node, &message(1), &other);
        live.expect(&[("ds_yield_refused", 1)]);
        answers(&live, YieldAnswer::Refused);
    }
    let none = DataServer::default();
    live.node.data_server().set_peer(ds(1), &none).unwrap();
    say(&live, Some(1));
    live.expect(&[("ds_yield_refused", 1)]);
    answers(&live, YieldAnswer::Refused);
    live.nothing_sent();
}

#[test]
fn what_is_not_here_and_what_is_no_made_ack() {
    let _host = own_host();
    let mut live = Live::answering();
    for other in [
        made(&live).payload("x"),
        made(&live).flags("FA"),
        made(&live).options([]),
    ] {
        let flow = flow(&live.client);
        let next = Some(short(ds(1)));
        send(&live.node, &Message::Yield { flow, next }, &other);
        live.expect(&[("lccp_mismatch", 1)]);
    }
    live.client = Client::fresh();
    let ack = live.client.later(COOKIE, 1, 1).options([1; 12]);
    let flow = flow(&live.client);
    send(&live.node, &Message::Yield { flow, next: None }, &ack);
    live.expect(&[("ds_yield_gone", 1)]);
    answers(&live, YieldAnswer::Gone);
}
