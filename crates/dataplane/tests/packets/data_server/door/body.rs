//! Bodies that are chunked or very long: the door follows them to their end, and judges the requests behind them.

use super::owner::{ELSEWHERE, HANDED_ON, LET_IN, end_of, ended, owned, request};
use crate::prelude::*;

const HEAD: &[u8] =
    b"POST /ds1/ HTTP/1.1\r\nHost: 10.77.0.100\r\nTransfer-Encoding: chunked\r\n\r\n";
const LAST: &[u8] = b"0\r\n\r\n";
const CHANGED: Counted<'_> = &[("ds_door_changed", 1)];

/// Divides the text into packets of these lengths, and one with the rest.
fn packets(live: &Live, text: &[u8], lengths: &[usize]) -> Vec<Segment> {
    let mut packets: Vec<Segment> = Vec::new();
    let mut rest = text;
    for length in lengths.iter().copied().chain([text.len()]) {
        let (piece, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        if !piece.is_empty() {
            let before = packets.last();
            let seq = before.map_or(request(live, b"").seq, end_of);
            packets.push(request(live, piece).seq(seq));
        }
    }
    packets
}

/// Asserts that the text, in packets of these lengths, is let in as one request, and that the next request after the
/// response is judged.
#[track_caller]
fn is_one_request(text: &[u8], lengths: &[usize]) {
    let mut live = owned();
    let packets = packets(&live, text, lengths);
    let (first, rest) = packets.split_first().unwrap();
    live.forwards(first, LET_IN);
    for packet in rest {
        live.forwards(packet, FORWARDED);
    }
    expect_bytes(&live.stream, text);
    live.answer_another(text.len());
    live.forwards(&request(&live, ELSEWHERE), HANDED_ON);
}

#[test]
fn a_chunked_body_ends_where_it_says() {
    let body = b"5\r\nhello\r\n00b;a=b\r\nhello world\r\n0\r\nTrailer: yes\r\n\r\n";
    let text = [HEAD, body].concat();
    let _host = own_host();
    is_one_request(&text, &[]);
    for at in (HEAD.len()..text.len()).step_by(3) {
        is_one_request(&text, &[at]);
    }
    is_one_request(
        &text,
        &[
            HEAD.len(),
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            1,
            9,
            1,
            1,
            30,
        ],
    );
}

/// The content of a chunk is never judged as a request, whatever it says and in whatever order its packets come.
#[test]
fn what_is_inside_of_a_chunk_is_no_request() {
    let _host = own_host();
    let mut live = owned();
    let size = format!("{:x}\r\n", 2 * ELSEWHERE.len());
    let text = [HEAD, size.as_bytes(), ELSEWHERE, ELSEWHERE, b"\r\n", LAST].concat();
    let length = ELSEWHERE.len();
    let packets = packets(&live, &text, &[HEAD.len(), size.len(), length, length]);
    let [head, size, one, other, last] = &packets[..] else {
        panic!("{packets:?}");
    };
    live.forwards(head, LET_IN);
    for packet in [size, other, one, last] {
        live.forwards(packet, FORWARDED);
    }
    expect_bytes(&live.stream, &text);
    live.answer_another(text.len());
    live.forwards(&request(&live, ELSEWHERE), HANDED_ON);
}

#[test]
fn what_is_behind_the_last_chunk_is_judged() {
    let _host = own_host();
    let mut live = owned();
    let text = [HEAD, b"5\r\nhello\r\n", LAST].concat();
    let both = [&text[..], ELSEWHERE].concat();
    let packets = packets(&live, &both, &[HEAD.len() + 4]);
    live.forwards(&packets[0], LET_IN);
    live.forwards(&packets[1], &[("ds_forwarded", 1), ("ds_door_cut", 1)]);
    expect_bytes(&live.stream, &text);
    live.answer_another(text.len());
    live.forwards(&request(&live, ELSEWHERE), HANDED_ON);
}

/// Before the size of a chunk has come, the door cannot know what is behind it.
#[test]
fn what_is_behind_a_gap_in_the_sizes_waits() {
    let _host = own_host();
    let live = owned();
    let text = [HEAD, b"5\r\nhello\r\n", LAST].concat();
    let packets = packets(&live, &text, &[HEAD.len(), 3]);
    let [head, size, rest] = &packets[..] else {
        panic!("{packets:?}");
    };
    live.forwards(head, LET_IN);
    live.forwards(rest, &[("ds_door_batch", 2), ("ds_door_later", 1)]);
    for packet in [size, rest] {
        live.forwards(packet, FORWARDED);
    }
    expect_bytes(&live.stream, &text);
}

/// A packet that the kernel has merged of many (GRO) may hold a whole upload, in chunks of one byte each.
#[test]
fn any_number_of_chunks_in_one_packet_is_followed() {
    let _host = own_host();
    let mut live = owned();
    let text = [HEAD, &b"1\r\nx\r\n".repeat(9000), LAST].concat();
    let packets = packets(&live, &text, &[HEAD.len()]);
    live.forwards(&packets[0], LET_IN);
    live.forwards(&packets[1], FORWARDED);
    expect_bytes(&live.stream, &text);
    live.answer_another(text.len());
    live.forwards(&request(&live, ELSEWHERE), HANDED_ON);
}

#[test]
fn what_is_no_chunk_ends_the_connection() {
    let _host = own_host();
    for body in [
        &b"g\r\n"[..],
        b"\r\n",
        b"123456789\r\n",
        b"0\r\n\rx",
        b"-1\r\n",
    ] {
        let live = owned();
        let packets = packets(&live, &[HEAD, body].concat(), &[HEAD.len()]);
        live.forwards(&packets[0], LET_IN);
        expect_bytes(&live.stream, HEAD);
        live.forwards(&packets[1], &[("ds_door_unreadable", 1)]);
        ended(&live);
    }
}

/// The door has read the size of a chunk from a packet that was broken on its way, so TCP drops that packet. A packet
/// with another size in its place does not pass.
#[test]
fn another_size_in_place_of_one_that_tcp_has_dropped_does_not_pass() {
    let _host = own_host();
    let live = owned();
    let text = [HEAD, b"3\r\nabc\r\n", LAST].concat();
    let packets = packets(&live, &text, &[HEAD.len()]);
    live.forwards(&packets[0], LET_IN);
    forward_broken(&live.node, &packets[1]);
    live.expect(FORWARDED);
    // This packet would end the body, and begin another request.
    let other = packets[1]
        .clone()
        .payload(&b"0\r\n\r\nGET /ds2/"[..packets[1].payload.len()]);
    live.forwards(&other, CHANGED);
    live.forwards(&packets[1], FORWARDED);
    expect_bytes(&live.stream, &text);
}

/// The body is longer than sequence numbers can tell.
#[test]
fn a_very_long_body_passes() {
    let _host = own_host();
    let live = owned();
    let head = b"PUT /ds1/ HTTP/1.1\r\nHost: 10.77.0.100\r\nContent-Length: 5000000000\r\n\r\n";
    let text = [&head[..], ELSEWHERE, ELSEWHERE].concat();
    let packets = packets(&live, &text, &[head.len() + 5, ELSEWHERE.len()]);
    let [first, second, third] = &packets[..] else {
        panic!("{packets:?}");
    };
    live.forwards(first, LET_IN);
    for packet in [third, second] {
        live.forwards(packet, FORWARDED);
    }
    expect_bytes(&live.stream, &text);
}
