//! NONE: packets of connections that are not here go back to the connection server.

use baton_wire::Message;

use crate::prelude::*;

const NONE: Counted<'_> = &[("ds_none", 1)];

fn packets(client: &Client) -> Vec<(&'static str, Segment)> {
    let ack = client.later(7, 100, 100);
    vec![
        ("an ACK", ack.clone()),
        ("data", ack.clone().flags("PA").payload(GET)),
        ("FIN", ack.clone().flags("FA")),
        ("no flags", ack.clone().flags("")),
        ("no TCP options", ack.clone().options([])),
        ("IP options", ack.clone().ip_options([1; 40])),
        ("as big as our MSS allows", biggest(client, 7)),
        ("another service", ack.to(SMTP)),
    ]
}

/// A data server knows the sender of a plain packet by its MAC address. A stranger's packet is dropped silently: see
/// [`crate::data_server::frames::plain`].
#[test]
fn a_plain_packet_goes_back_to_where_it_came_from() {
    for listening in [false, true] {
        let _host = own_host();
        let _listener = listening.then(|| listen(WEB));
        let node = Node::ds();
        node.know_connection_server();
        for (name, packet) in packets(&Client::fresh()) {
            let frame = packet.frame();
            let seen = node.run(&frame);
            seen.expect_of(name, Redirect, NONE);
            let back = sent(&node, &seen);
            assert_eq!((back.from, back.to), (ds(0), CS), "{name}");
            assert_eq!(seen.packet().ethernet.destination, CS_MAC, "{name}");
            assert_eq!(seen.packet().ethernet.source, ds_mac(0), "{name}");
            assert_eq!(back.message, none_of(&packet, true), "{name}");
            assert_eq!(back.packet, packet.packet(), "{name}");
            assert_eq!(seen.frame.len(), frame.len() + 100, "{name}");
        }
    }
}

#[test]
fn padding_stays_behind() {
    let _host = own_host();
    let node = Node::ds();
    node.know_connection_server();
    let ack = Client::fresh().later(7, 1, 1).options([]);
    let seen = node.run(&padded(ack.frame(), 6)).expect(Redirect, NONE);
    assert_eq!(seen.packet().padding, 6);
    assert_eq!(sent(&node, &seen).packet, ack.packet());
}

/// A FORWARD names its sender, which this node must know.
#[test]
fn a_forwarded_packet_goes_back_to_its_sender() {
    for listening in [false, true] {
        let _host = own_host();
        let _listener = listening.then(|| listen(WEB));
        let node = Node::ds();
        node.data_server().set_peer(CS, &peer(CS_MAC)).unwrap();
        for (name, packet) in packets(&Client::fresh()) {
            let client = of(&packet);
            let frame = to_ds(&forward(&client), node.now(), &packet.packet());
            let seen = node.run(&frame);
            seen.expect_of(name, Redirect, NONE);
            let back = sent(&node, &seen);
            assert_eq!((back.from, back.to), (ds(0), CS), "{name}");
            assert_eq!(seen.packet().ethernet.destination, CS_MAC, "{name}");
            assert_eq!(seen.packet().ethernet.source, ds_mac(0), "{name}");
            assert_eq!(back.message, none_of(&packet, false), "{name}");
            assert_eq!(back.packet, packet.packet(), "{name}");
            assert_eq!(seen.frame.len(), frame.len(), "{name}");
        }
    }
}

/// A forwarded packet that came back before, or whose sender is not known, is dropped here.
#[test]
fn where_a_forwarded_packet_ends() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let packet = client.later(7, 1, 1).packet();
    let again = Message::Forward {
        flow: flow(&client),
        next: None,
        attempt: 1,
    };
    let end = |message: &Message| {
        let frame = to_ds(message, node.now(), &packet);
        node.run(&frame).expect(Drop, &[("ds_no_socket", 1)]);
    };
    end(&forward(&client));
    node.data_server().set_peer(CS, &peer(CS_MAC)).unwrap();
    end(&again);
}

/// REFUSED goes to the connection server that the ADOPT names, which is not always the sender of the ADOPT.
#[test]
fn a_refusal_goes_to_who_asked() {
    let _host = own_host();
    let node = Node::ds();
    let client = Client::fresh();
    let packet = client.get(7).packet();
    let frame = to_ds(&adopt(&client), node.now(), &packet);
    node.data_server().set_peer(CS, &peer(CS_MAC)).unwrap();
    let seen = node.run(&frame).expect(Redirect, &[("ds_refused", 1)]);
    assert_eq!(sent(&node, &seen).to, CS);

    let mut message = adopt(&client);
    let Message::Adopt { asker, .. } = &mut message else {
        panic!("{message:?}");
    };
    *asker = Some(crate::lccp::short(ds(2)));
    let frame = to_ds(&message, node.now(), &packet);
    let unknown: Counted<'_> = &[("ds_no_way", 1), ("ds_refused", 1)];
    node.run(&frame).expect(Drop, unknown);
    node.data_server()
        .set_peer(ds(2), &peer(ds_mac(2)))
        .unwrap();
    let seen = node.run(&frame).expect(Redirect, &[("ds_refused", 1)]);
    let refused = sent(&node, &seen);
    assert_eq!((refused.from, refused.to), (ds(0), ds(2)));
    assert_eq!(seen.packet().ethernet.destination, ds_mac(2));
    assert_eq!(refused.packet, packet);
    assert!(matches!(refused.message, Message::Refused { .. }));
}

fn none_of(packet: &Segment, is_plain: bool) -> Message {
    none(&of(packet), 0, is_plain)
}

fn of(packet: &Segment) -> Client {
    packet.client()
}
