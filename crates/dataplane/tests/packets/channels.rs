//! Messages that move a connection are numbered and kept by the sender, and noted by the receiver.

use std::time::Duration;

use baton_abi::{DataServer, LccpHeader, SENT_FRAME_BYTES, WINDOW};
use baton_dataplane::Channels;
use baton_wire::{Clock, Message, encode};
use zerocopy::FromBytes as _;

use crate::{connection_server::http::routes_by_name, prelude::*};

const CHANNEL: u16 = 5;
const FIRST: u16 = 65_535;
/// A time that is longer than any test here takes.
const SOON: Duration = Duration::from_secs(600);

/// A connection server whose channel to the first data server begins at [`FIRST`].
fn numbering_cs() -> (Node, Channels) {
    let node = Node::fresh_cs();
    let channels = node.plane().channels().unwrap();
    channels.begin_at(CHANNEL, FIRST).unwrap();
    let numbered = DataServer {
        channel: CHANNEL,
        ..data_server(0)
    };
    node.plane().set_data_server(0, &numbered).unwrap();
    routes_by_name(&node);
    (node, channels)
}

fn number_in(frame: &[u8]) -> u16 {
    let (header, _) = LccpHeader::read_from_prefix(&frame[LCCP..]).unwrap();
    u16::from_be(header.be_sequence)
}

#[track_caller]
fn is_kept(channels: &Channels, seen: &Seen, number: u16) {
    assert_eq!(number_in(&seen.frame), number);
    let kept = channels.sent_message(CHANNEL, number, SOON).unwrap();
    assert_eq!(kept, Some((ARRIVES_AT, seen.frame.clone())));
}

#[test]
fn an_adopt_and_its_copies() {
    let (node, channels) = numbering_cs();
    let client = Client::fresh();
    let first = client.get(node.cookie(&client));
    node.set_choices(0, &[0, 0, 0]);
    let mut next = FIRST;
    for counter in ["cs_adopt", "cs_adopt_again", "cs_adopt_again"] {
        let seen = node.run(&first.frame()).expect(Tx, &[(counter, 1)]);
        is_kept(&channels, &seen, next);
        next = next.wrapping_add(1);
        assert_eq!(channels.next(CHANNEL).unwrap(), next);
    }
}

/// A request in a jumbo frame is too long to be kept. It is sent all the same; if it is lost, the client's TCP has to
/// send it again.
#[test]
fn what_is_too_long_is_not_kept() {
    let (node, channels) = numbering_cs();
    node.change(|settings| settings.mss = 8860);
    node.set_choices(0, &[0, 0, 0]);
    let longest = SENT_FRAME_BYTES as usize - INNER - 52;
    for (number, bytes, kept) in [
        (FIRST, longest, true),
        (0, longest + 1, false),
        (1, 8000, false),
    ] {
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let first = client.get(cookie).payload(vec![b'x'; bytes]);
        let seen = node.run(&first.frame());
        if kept {
            is_kept(&channels, &seen.expect(Tx, &[("cs_adopt", 1)]), number);
            continue;
        }
        let seen = seen.expect(Tx, &[("cs_adopt", 1), ("lccp_not_kept", 1)]);
        assert_eq!(number_in(&seen.frame), number);
        assert_eq!(channels.sent_message(CHANNEL, number, SOON).unwrap(), None);
    }
}

#[test]
fn without_a_channel_there_is_no_number() {
    let (node, channels) = numbering_cs();
    node.plane().set_data_server(0, &data_server(0)).unwrap();
    let client = Client::fresh();
    node.set_choices(0, &[0, 0, 0]);
    let seen = node.run(&client.get(node.cookie(&client)).frame());
    let seen = seen.expect(Tx, &[("cs_adopt", 1)]);
    assert_eq!(number_in(&seen.frame), 0);
    assert_eq!(channels.next(CHANNEL).unwrap(), FIRST);
}

#[test]
fn a_send_buffer_keeps_the_last_ones() {
    let (node, channels) = numbering_cs();
    node.set_choices(0, &[0, 0, 0]);
    let client = Client::fresh();
    let first = client.get(node.cookie(&client));
    let frames: Vec<Vec<u8>> = (0..WINDOW + 1)
        .map(|_| node.run(&first.frame()).frame)
        .collect();
    assert_eq!(channels.sent_message(CHANNEL, FIRST, SOON).unwrap(), None);
    for (after, frame) in frames.iter().enumerate().skip(1) {
        let number = FIRST.wrapping_add(after as u16);
        let kept = channels.sent_message(CHANNEL, number, SOON).unwrap();
        assert_eq!(kept.map(|(_, kept)| kept).as_ref(), Some(frame), "{number}");
    }
    // A message that is older than the given age is not returned.
    let last = FIRST.wrapping_add(WINDOW as u16);
    std::thread::sleep(Duration::from_millis(30));
    let recent = Duration::from_millis(20);
    assert_eq!(channels.sent_message(CHANNEL, last, recent).unwrap(), None);
    assert!(
        channels
            .sent_message(CHANNEL, last, SOON)
            .unwrap()
            .is_some()
    );
    let never = FIRST.wrapping_add(WINDOW as u16 + 44);
    assert_eq!(channels.sent_message(CHANNEL, never, SOON).unwrap(), None);
    assert_eq!(channels.sent_message(CHANNEL + 1, 1, SOON).unwrap(), None);
}

#[test]
fn a_channel_in_use_goes_on() {
    let (node, channels) = numbering_cs();
    channels.begin_at(CHANNEL, 7).unwrap();
    assert_eq!(channels.next(CHANNEL).unwrap(), FIRST);
    drop(node);
}

#[test]
fn what_comes_is_noted_by_its_number() {
    let _host = own_host();
    let node = Node::fresh_ds();
    let channels = node.plane().channels().unwrap();
    let client = Client::fresh();
    let numbered = |message, number: u16| {
        let mut frame = to_ds(&message, node.now(), &client.get(7).packet());
        frame[LCCP + 6..LCCP + 8].copy_from_slice(&number.to_be_bytes());
        tag_again(&mut frame, &key().lccp());
        frame
    };
    let later = 2 * WINDOW as u16 + 1;
    // Nothing is noted of a node that is not known.
    let seen = node.run(&numbered(adopt(&client), later));
    let seen = seen.expect(Redirect, &[("ds_refused", 1)]);
    // The answer goes to another receiver, so it does not carry this number.
    assert_eq!(number_in(&seen.frame), 0);
    assert_eq!(channels.receive_window(CS).unwrap(), None);

    channels.make_receive_window(CS).unwrap();
    node.run(&numbered(adopt(&client), later));
    node.run(&numbered(adopt(&client), 2));
    node.run(&numbered(forward(&client), 0));
    channels.make_receive_window(CS).unwrap();
    let came = channels.receive_window(CS).unwrap().unwrap().came;
    let noted: Vec<_> = came.iter().enumerate().filter(|(_, n)| **n != 0).collect();
    assert_eq!(noted, [(1, &later), (2, &2)]);
}

#[test]
fn all_channels_at_once() {
    let _host = own_host();
    let node = Node::fresh_ds();
    let channels = node.plane().channels().unwrap();
    for channel in 1..200 {
        channels.begin_at(channel, 1000 + channel).unwrap();
    }
    let next = channels.all_next(150).unwrap();
    assert_eq!((next.len(), next[0], next[149]), (150, 0, 1149));
    assert!(channels.all_next(0).unwrap().is_empty());
}

/// A message that was delayed, not lost, comes twice, and meanwhile its connection has gone on.
#[test]
fn what_comes_again_adopts_nothing() {
    let _host = own_host();
    let live = Live::answered();
    let channels = live.node.plane().channels().unwrap();
    channels.make_receive_window(CS).unwrap();
    let sent = live.node.now();
    let numbered = |message: &Message, number, packet: &Segment, counted| {
        send_lccp(ds(0), &numbered_message(message, sent, number, packet));
        live.expect(&[(counted, 1)]);
    };
    // The connection is here already, so TCP sees a retransmission.
    let first = live.client.get(COOKIE);
    numbered(&adopt(&live.client), 8, &first, "ds_duplicate");
    numbered(&adopt(&live.client), 8, &first, "ds_duplicate");
}

fn numbered_message(message: &Message, sent: Clock, number: u16, packet: &Segment) -> Vec<u8> {
    let packet = packet.packet();
    let bytes = encode(message, &[], sent, &key().lccp(), TO_DS);
    let mut header = LccpHeader::read_from_bytes(&bytes).unwrap();
    header.be_sequence = u16::to_be(number);
    sealed(header, &key().lccp(), TO_DS, &packet)
}
