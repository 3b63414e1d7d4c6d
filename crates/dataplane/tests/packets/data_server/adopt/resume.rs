//! ADOPT of a connection in the middle of a response: the agent that has the rest of the response gets the connection.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    os::fd::AsFd as _,
};

use baton_abi::{LCCP_FLAG_RESUME, RESPONSE_BODY, RESPONSE_COMPLETE, Response};

use crate::{
    data_server::door::owner::{ELSEWHERE, HERE, goes_with, owned, request, serves},
    prelude::*,
};

const AGENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9998);

fn send_resumed(node: &Node, client: &Client, packet: &Segment) {
    let packet = packet.packet();
    let mut header = header_of(node, &adopt(client), TO_DS);
    header.flags = LCCP_FLAG_RESUME as u8;
    send_lccp(ds(0), &sealed(header, &key().lccp(), TO_DS, &packet));
}

#[test]
fn an_acknowledgement_is_adopted_into_the_agent() {
    let _host = own_host();
    let (server, agent) = (listen(WEB), listen(AGENT));
    let node = attached();
    node.change(|settings| settings.resume_port = AGENT.port());
    let client = Client::fresh();
    let ack = client.later(COOKIE, 40, 70_000);
    send_resumed(&node, &client, &ack);
    let (stream, from) = accept(&agent);
    assert_eq!(from, SocketAddr::V4(client.address));
    assert_eq!(stream.local_addr().unwrap(), SocketAddr::V4(WEB));
    node.expect(&[("ds_resumed", 1)]);
    assert!(nothing_to_accept(&server));
    // A second ADOPT with the same packet is a duplicate.
    send_resumed(&node, &client, &ack);
    node.expect(&[("ds_duplicate", 1)]);
    assert!(nothing_to_accept(&agent));
}

/// The client acknowledges more than this socket has sent, so another data server has sent that meanwhile. The socket
/// is out of date, and ends.
#[test]
fn a_socket_that_was_overtaken_ends() {
    let _host = own_host();
    let agent = listen(AGENT);
    let node = attached();
    node.change(|settings| settings.resume_port = AGENT.port());
    let client = Client::fresh();
    send_resumed(&node, &client, &client.later(COOKIE, 40, 70_000));
    let (_first, _) = accept(&agent);
    node.expect(&[("ds_resumed", 1)]);
    send_resumed(&node, &client, &client.later(COOKIE, 40, 90_000));
    let (_second, from) = accept(&agent);
    assert_eq!(from, SocketAddr::V4(client.address));
    node.expect(&[("ds_resumed", 1), ("ds_stale_ended", 1)]);
}

/// Without an agent the ADOPT is refused. The server does not get the connection, because it would wait for a request.
#[test]
fn without_an_agent_it_is_refused() {
    let _host = own_host();
    let server = listen(WEB);
    let node = attached();
    let client = Client::fresh();
    send_resumed(&node, &client, &client.later(COOKIE, 40, 70_000));
    node.expect(&[("ds_refused", 1), ("lccp_not_ours", 1)]);
    assert!(nothing_to_accept(&server));
}

/// Returns a connection that the agent here has resumed, and whose owner this node is from then on. `left` bytes of its
/// response are still to be sent; with 0 the response is complete.
fn resumed(left: u64) -> Live {
    let mut live = owned();
    live.listener = listen(AGENT);
    live.has_acks = true;
    live.node
        .change(|settings| settings.resume_port = AGENT.port());
    live.client = Client::fresh();
    (live.sent, live.answers) = (40, 3);
    let ack = live.ack();
    send_resumed(&live.node, &live.client, &ack);
    live.stream = accept(&live.listener).0;
    live.expect(&[("ds_resumed", 1)]);
    let state = if left == 0 {
        RESPONSE_COMPLETE
    } else {
        RESPONSE_BODY
    };
    let rest = Response {
        left,
        next: ack.ack,
        start: ack.ack.wrapping_sub(9),
        asked: ack.seq,
        answered: ack.seq,
        state: state as u8,
        responses: 1,
        ..Response::default()
    };
    let responses = live.node.data_server().responses().unwrap();
    responses.expect(live.stream.as_fd(), &rest).unwrap();
    live
}

/// The agent's socket has a door like any other: the next request is let in there, or the connection goes to another
/// data server with it.
#[test]
fn behind_the_rest_the_door_judges() {
    {
        let _host = own_host();
        let mut live = resumed(0);
        serves(&mut live, HERE);
        let next = request(&live, ELSEWHERE);
        goes_with(&live, &next);
    }
    let _host = own_host();
    let live = resumed(0);
    let next = request(&live, ELSEWHERE);
    goes_with(&live, &next);
}

/// While the rest of a response is still being sent, the connection stays: a request for another data server waits.
#[test]
fn the_rest_comes_before_what_is_another_s() {
    let _host = own_host();
    let live = resumed(5);
    live.forwards(&request(&live, ELSEWHERE), &[("ds_door_withheld", 1)]);
}

/// A second ADOPT with the same acknowledgement is a duplicate also where the connection has a door.
#[test]
fn an_owned_one_twice_is_once() {
    let _host = own_host();
    let live = resumed(5);
    send_resumed(&live.node, &live.client, &live.ack());
    live.expect(&[("ds_duplicate", 1)]);
    assert!(nothing_to_accept(&live.listener));
}
