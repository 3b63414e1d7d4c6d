//! Frames of an MTU of 9000 have several pieces, of which only the first can be read in place.

use baton_abi::DataServer;

use super::switched::switched;
use crate::{
    connection_server::http::{Connection, route, routes_by_name},
    prelude::*,
};

/// The MTU of 9000 less 40 bytes of IP and TCP headers, less 100 of IP and LCCP headers around the packet.
const JUMBO_MSS: u16 = 8860;

fn prepared() -> Node {
    let node = Node::cs();
    node.change(|settings| settings.mss = JUMBO_MSS);
    routes_by_name(&node);
    node
}

/// A request for the second data server that is `bytes` long.
fn request(bytes: usize) -> String {
    let line = "GET /ds2/ HTTP/1.1\r\nHost: a\r\nCookie: \r\n\r\n";
    let cookie = "c".repeat(bytes - line.len());
    line.replace("Cookie: ", &format!("Cookie: {cookie}"))
}

/// Whether this kernel can pull headers into the linear part, so that a test run can leave them out of it.
fn pulls() -> bool {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let pulls = symbols.contains(" bpf_xdp_pull_data");
    if !pulls {
        eprintln!("left out: this kernel has no bpf_xdp_pull_data()");
    }
    pulls
}

/// Checks that a first request for the second data server, changed by `change`, goes there.
#[track_caller]
fn is_led(node: &Node, name: &str, change: impl FnOnce(Segment) -> Segment) {
    let client = Client::of(HTTP);
    let packet = change(client.get(node.cookie(&client)));
    let seen = node.run(&packet.frame());
    seen.expect_of(name, Tx, &[("cs_adopt", 1)]);
    let message = sent(node, &seen);
    assert_eq!(
        (message.to, message.packet),
        (ds(1), packet.packet()),
        "{name}"
    );
}

#[test]
fn a_long_request_is_led_by_its_path() {
    let node = prepared();
    for bytes in [2041, 3500, 3600, 7000, JUMBO_MSS.into()] {
        is_led(&node, &format!("{bytes} bytes"), |packet| {
            packet.options([]).payload(request(bytes))
        });
    }
    let client = Client::of(HTTP);
    let packet = client.get(node.cookie(&client)).options([]);
    let packet = packet.payload(request(usize::from(JUMBO_MSS) + 1));
    node.run(&packet.frame()).expect(Drop, &[("cs_too_big", 1)]);
}

#[test]
fn what_is_longer_than_is_looked_at() {
    let node = prepared();
    node.change(|settings| settings.mss = 16_400);
    for bytes in [16_300, 16_376, 16_377] {
        is_led(&node, &format!("{bytes} bytes"), |packet| {
            packet.options([]).payload(request(bytes))
        });
    }
}

/// Segments that the kernel has merged may only leave by the interface that they came by, which cuts them. Another
/// interface would refuse them silently, so they are dropped and counted.
#[test]
fn merged_segments() {
    let node = prepared();
    let mut connection = Connection::answered(&node);
    // A body without a length, so that where the next request begins does not matter.
    let request = "POST /ds1/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let request = connection.data(request);
    connection.send(&node, &request);
    let most = 9000 - 52;
    for (bytes, merged) in [(most, 0), (most + 1, 1), (30_000, 1)] {
        let packet = connection.data(vec![b'x'; bytes]);
        let counted = connection.send(&node, &packet).counted;
        assert_eq!(counted.get("cs_forward"), Some(&1));
        assert_eq!(counted.get("cs_merged").copied().unwrap_or(0), merged);
    }
    let elsewhere = DataServer {
        ifindex: ARRIVES_AT + 1,
        ..data_server(0)
    };
    node.plane().set_data_server(0, &elsewhere).unwrap();
    let packet = connection.data(vec![b'x'; most + 1]);
    node.run(&packet.frame())
        .expect(Drop, &[("cs_merged_lost", 1)]);
    let packet = connection.data(vec![b'x'; most]);
    let bytes = packet.packet().len() as u64;
    let counted = [("cs_forward", 1), ("cs_forward_bytes", bytes)];
    node.run(&packet.frame()).expect(Redirect, &counted);
}

/// The Host header and the end of the head are behind the first pieces, and are found there.
#[test]
fn what_is_far_behind_is_read() {
    let node = prepared();
    let name = "far.example.org";
    node.routing()
        .set_hosts(&[(baton_abi::HostKey::exact(name).unwrap(), 1)])
        .unwrap();
    let other = u32::from(first_pool_of_one());
    node.routing()
        .set_routes(&[(route(1, "/"), other + 2), (route(0, "/"), other)])
        .unwrap();
    let long = "c".repeat(8000);
    let request = format!("GET / HTTP/1.1\r\nCookie: {long}\r\nHost: {name}\r\n\r\n");
    let connection = Connection::open(&node, request);
    assert_eq!(connection.entry(&node).owner, 2);
}

#[test]
fn headers_outside_of_the_linear_part() {
    if !pulls() {
        return;
    }
    let node = prepared();
    for linear in [14, 20, 34, 40, 54, 65, 100, 128, 255, 256, 257, 2000] {
        node.set_linear(linear);
        let client = Client::fresh();
        let cookie = node.cookie(&client);
        let ack = client.ack(cookie);
        node.run(&ack.frame())
            .expect(Drop, &[("cs_handshake_ack", 1)]);
        for bytes in [200, 1300, 8000] {
            is_led(&node, &format!("{linear} of {bytes}"), |packet| {
                packet.payload(request(bytes))
            });
            is_led(&node, &format!("{linear} of {bytes}, options"), |packet| {
                packet
                    .ip_options([1; 40])
                    .options([1; 40])
                    .payload(request(bytes))
            });
        }
    }
}

#[test]
fn what_is_not_for_us_passes_as_it_came() {
    if !pulls() {
        return;
    }
    let node = prepared();
    let other = Client::of("10.77.0.101:80".parse().unwrap());
    let frame = other.get(7).payload(vec![b'x'; 8000]).frame();
    for linear in [14, 60, 4096] {
        node.set_linear(linear);
        node.run(&frame).expect(crate::node::Pass, &[]).untouched();
    }
}

/// The answer is shorter than the frame, or than the linear part of the frame.
#[test]
fn nobody_can_answer_a_long_request() {
    let node = prepared();
    node.routing().set_routes(&[(route(0, "/"), 2)]).unwrap();
    let linear = if pulls() {
        &[14, 66, 100, 4096][..]
    } else {
        &[]
    };
    let all = linear.iter().copied().map(Some).chain([None]);
    for linear in all {
        if let Some(bytes) = linear {
            node.set_linear(bytes);
        }
        for bytes in [100, 300, 1300, 8000] {
            let client = Client::of(HTTP);
            let packet = client.get(node.cookie(&client)).payload(request(bytes));
            let seen = node.run(&packet.frame());
            seen.check(Tx, &[("cs_no_data_server", 1)]).unwrap();
            let tcp = seen.packet().tcp().unwrap();
            assert_eq!(tcp.flags(), "R", "{linear:?}");
            assert_eq!(seen.packet().padding, 0);
            assert_eq!(tcp.header.sequence_number, packet.ack);
        }
    }
}

#[test]
fn through_the_switch() {
    let node = prepared();
    let client = Client::of(HTTP);
    let cookie = node.cookie(&client);
    let packet = client.get(cookie).payload(request(8000));
    let seen = node.run(&switched(&packet.frame()));
    let message = sent(&node, &seen.expect(Tx, &[("cs_adopt", 1)]));
    assert_eq!(message.packet, packet.packet());

    let switch = Node::switch();
    switch.change(|settings| settings.mss = JUMBO_MSS);
    let frame = packet.frame();
    let seen = switch.run(&frame).expect(Tx, &[("switch_forward", 1)]);
    assert_eq!(seen.frame.len(), frame.len() + 14);
    assert_eq!(seen.frame[14..], frame);
}
