//! ADOPT and FORWARD as far as a test run goes: all cases that do not end in a new socket.

use std::io::Write as _;

use baton_abi::MARK_REQUEUED;
use baton_wire::Refusal;

use crate::prelude::*;

const DUPLICATE: Counted<'_> = &[("ds_duplicate", 1)];

/// Without a listener the whole message goes back, so that the connection server can try another data server.
#[test]
fn without_a_listener_refused() {
    let _host = own_host();
    refused(Refusal::NoListener, &[("ds_refused", 1)]);
}

/// A test run's packet has not come in through an interface, so the kernel makes no socket of it. The ADOPT is then
/// refused, because no packet may go up to TCP without its socket.
#[test]
fn without_a_socket_refused_too() {
    let _host = own_host();
    let _listener = listen(WEB);
    let counted: Counted<'_> = &[("ds_refused", 1), ("ds_unassigned", 1)];
    refused(Refusal::NotAssigned, counted);
}

fn refused(refusal: Refusal, counted: Counted<'_>) {
    let node = Node::ds();
    let client = Client::fresh();
    let get = client.get(7);
    let frame = to_ds(&adopt(&client), node.now(), &get.packet());
    let seen = node.run(&frame).expect(Redirect, counted);
    let back = sent(&node, &seen_with_new_outer(&seen));
    assert_eq!((back.from, back.to), (ds(0), CS));
    assert_eq!(seen.packet().ethernet.source, ds_mac(0));
    assert_eq!(seen.packet().ethernet.destination, CS_MAC);
    assert_eq!(
        back.message,
        crate::lccp::refused(&client, linux_tcb(), refusal)
    );
    assert_eq!(back.packet, get.packet());
    assert_eq!(seen.frame.len(), frame.len());
}

/// A refusal carries the time of this node's own clock, not the time at which the connection server sealed the ADOPT.
#[test]
fn a_refusal_is_dated_anew() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let frame = to_ds(&adopt(&client), node.now(), &client.get(7).packet());
    node.wait(std::time::Duration::from_secs(8));
    let seen = node.run(&frame).expect(Redirect, &[("ds_refused", 1)]);
    sent(&node, &seen_with_new_outer(&seen));
}

/// An ADOPT whose request begins with the connection's first byte is a duplicate, and is delivered.
#[test]
fn a_duplicate_is_delivered() {
    let _host = own_host();
    let listener = listen(WEB);
    let mut connection = connect(&listener, WEB);
    let (node, client) = (Node::ds(), of(&connection));
    let get = client.get(7);
    let frame = to_ds(&adopt(&client), node.now(), &get.packet());
    let stripped = [&frame[..14], &get.packet()].concat();

    // It is a duplicate before the first byte has come, after the request, and after more data.
    let seen = node.run(&frame).expect(Pass, DUPLICATE);
    assert_eq!(seen.frame, stripped);
    connection.client.write_all(GET).unwrap();
    receive(&mut connection);
    node.run(&frame).expect(Pass, DUPLICATE);
    connection.client.write_all(&[b'x'; 5000]).unwrap();
    receive(&mut connection);
    node.run(&frame).expect(Pass, DUPLICATE);
}

/// A duplicate may come after the client's FIN, which also takes a sequence number.
#[test]
fn a_duplicate_after_the_clients_fin_is_delivered() {
    let _host = own_host();
    let listener = listen(WEB);
    let mut connection = connect(&listener, WEB);
    connection.client.write_all(GET).unwrap();
    connection
        .client
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    receive(&mut connection);
    let (node, client) = (Node::ds(), of(&connection));
    let frame = to_ds(&adopt(&client), node.now(), &client.get(7).packet());
    node.run(&frame).expect(Pass, DUPLICATE);
    // The next duplicate is delivered as well.
    node.run(&frame).expect(Pass, DUPLICATE);
}

/// An older connection that still holds the ports ends by the RST that its client would have sent.
#[test]
fn an_older_connection_ends() {
    let _host = own_host();
    let listener = listen(WEB);
    let mut connection = connect(&listener, WEB);
    connection.client.write_all(GET).unwrap();
    receive(&mut connection);
    let expected = connection.isn.wrapping_add(1 + GET.len() as u32);
    older_ends(&of(&connection).again(), expected, "ds_stale_ended");
}

#[test]
fn time_wait_ends() {
    let _host = own_host();
    let listener = listen(WEB);
    let mut connection = connect(&listener, WEB);
    connection.client.write_all(GET).unwrap();
    receive(&mut connection);
    let client = of(&connection);
    drop(connection.server);
    receive_end(&mut connection.client);
    drop(connection.client);
    // The request and the client's FIN both take sequence numbers.
    let expected = client.isn.wrapping_add(1 + GET.len() as u32 + 1);
    older_ends(&client.again(), expected, "ds_time_wait_ended");
}

/// The first request of a connection that has ended comes again, although its client has the answer. It is dropped,
/// because the server would carry it out twice.
#[test]
fn a_request_of_what_has_ended_is_dropped() {
    let _host = own_host();
    let listener = listen(WEB);
    let mut connection = connect(&listener, WEB);
    connection.client.write_all(GET).unwrap();
    receive(&mut connection);
    connection.server.write_all(b"an answer").unwrap();
    let client = of(&connection);
    drop(connection.server);
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut connection.client, &mut all).unwrap();
    drop(connection.client);
    let node = Node::ds();
    let get = client.get(connection.server_isn);
    let frame = to_ds(&adopt(&client), node.now(), &get.packet());
    node.run(&frame).expect(Drop, &[("ds_ended_before", 1)]);
    // If only one of the two numbers is the old connection's, the request belongs to another connection.
    for other in [
        get.clone().seq(get.seq ^ 1 << 30),
        client.get(connection.server_isn ^ 1 << 30),
    ] {
        let frame = to_ds(&adopt(&client), node.now(), &other.packet());
        node.run(&frame).expect(Pass, &[("ds_time_wait_ended", 1)]);
    }
}

fn older_ends(client: &Client, expected: u32, counter: &str) {
    let node = Node::ds();
    let flags: [&'static str; 5] = ["PA", "A", "FPA", "PAU", "PAEC"];
    for flags in flags {
        let get = client.get(7).flags(flags);
        let frame = to_ds(&adopt(client), node.now(), &get.packet());
        let seen = node.run(&frame).expect(Pass, &[(counter, 1)]);
        let tcp = seen.packet().tcp().unwrap();
        assert_eq!(ends(&seen.packet(), &tcp), (client.address, client.service));
        assert_eq!(tcp.header.sequence_number, expected, "{flags}");
        assert!(tcp.header.rst && tcp.header.ack, "{}", tcp.flags());
        assert!(!tcp.header.syn && !tcp.header.fin && !tcp.header.psh);
        assert_eq!(seen.frame.len(), 14 + get.packet().len());

        // A packet that was already put back on the ingress once is not put back a second time.
        let again = node.run_marked(&frame, Some(MARK_REQUEUED));
        again.expect(Drop, &[("ds_no_socket", 1)]);
        // Any other mark is not this program's, and changes nothing.
        node.run_marked(&frame, Some(77))
            .expect(Pass, &[(counter, 1)]);
    }
}

#[test]
fn forward_is_unwrapped_for_its_connection() {
    let _host = own_host();
    let listener = listen(WEB);
    let connection = connect(&listener, WEB);
    let (node, client) = (Node::ds(), of(&connection));
    for packet in [
        client.later(7, 0, 100),
        client.later(7, 0, 100).options([]).payload("x"),
        client.later(7, 50, 100).flags("FA"),
        client.later(7, 50, 100).flags("R"),
        client
            .later(7, 0, 100)
            .ip_options([1; 40])
            .payload(vec![b'x'; 1300]),
    ] {
        let message = forward(&client);
        let frame = to_ds(&message, node.now(), &packet.packet());
        let seen = node.run(&frame).expect(Pass, &[("ds_forwarded", 1)]);
        assert_eq!(seen.frame, [&frame[..14], &packet.packet()].concat());
    }
}

/// A FORWARD of no connection here is dropped if this node knows no way to the connection server that sent it. See
/// [`crate::data_server::handover::none`] for a node that knows one.
#[test]
fn forward_without_a_connection_ends_here() {
    for listening in [false, true] {
        let _host = own_host();
        let _listener = listening.then(|| listen(WEB));
        let node = Node::ds();
        let client = Client::fresh();
        let message = forward(&client);
        let packet = client.later(7, 100, 100).packet();
        let frame = to_ds(&message, node.now(), &packet);
        node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
    }
}

fn of(connection: &Connection) -> Client {
    Client {
        address: connection.from,
        service: WEB,
        isn: connection.isn,
    }
}

/// Gives a message that was turned around the outer header of a node. The program leaves the outer header's other
/// fields as the sender wrote them, and the sender in these tests writes another TTL and identification than a node
/// does.
fn seen_with_new_outer(seen: &crate::node::Seen) -> crate::node::Seen {
    let mut ip = seen.packet().ip;
    (ip.time_to_live, ip.identification) = (64, 0);
    ip.header_checksum = ip.calc_header_checksum();
    let frame = patched(seen.frame.clone(), 14, &ip.to_bytes());
    assert!(frame.len() > INNER);
    crate::node::Seen {
        frame,
        input: seen.input.clone(),
        counted: seen.counted.clone(),
        ..*seen
    }
}

fn receive(connection: &mut Connection) {
    use std::io::Read as _;
    let mut bytes = [0; 8192];
    assert!(connection.server.read(&mut bytes).unwrap() > 0);
}

fn receive_end(client: &mut std::net::TcpStream) {
    use std::io::Read as _;
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}
