//! The split: from the SYN to the ADOPT that carries the first request.

use baton_abi::{
    DATA_SERVER_LOCAL, DATA_SERVER_PRESENT, DataServer, NO_DATA_SERVER, TCB_ADOPTING, TCB_FIN,
    TCB_WAITING,
};
use baton_wire::Message;

use crate::prelude::*;

const ADOPTED: Counted<'_> = &[("cs_adopt", 1)];

#[test]
fn the_whole_handshake() {
    let node = Node::fresh_cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    assert!(node.tcb(&client).is_none(), "a SYN leaves nothing");

    let ack = client.ack(cookie).frame();
    node.run(&ack).expect(Drop, &[("cs_handshake_ack", 1)]);
    assert!(node.tcb(&client).is_none(), "nor does the ACK");

    let get = client.get(cookie);
    let seen = node.run(&get.frame()).expect(Tx, ADOPTED);
    let outer = seen.packet();
    assert_eq!(outer.ethernet.source, CS_MAC);
    assert_eq!(outer.ethernet.destination, ds_mac(0));
    assert_eq!(seen.frame.len(), get.frame().len() + 100);
    let sent = sent(&node, &seen);
    assert_eq!((sent.from, sent.to), (CS, ds(0)));
    assert_eq!(sent.message, adopt(&client));
    assert_eq!(sent.packet, get.packet());

    let entry = node.tcb(&client).unwrap();
    assert_eq!((entry.request_seq, entry.last_ack), (get.seq, get.ack));
    assert_eq!(entry.last_seq, get.seq.wrapping_add(GET.len() as u32));
    assert_eq!((entry.last_ack, entry.last_ack), (get.ack, get.ack));
    assert_eq!(entry.owner, 0);
    assert_eq!(u32::from(entry.state), TCB_ADOPTING | TCB_WAITING);
    assert_eq!(u32::from(entry.previous), NO_DATA_SERVER);
    assert_eq!(
        (entry.mss, entry.snd_wscale, entry.rcv_wscale),
        (1460, 7, 7)
    );
    assert_eq!(node.connections(0), 1);
}

/// First packets of many shapes. Each is carried in the ADOPT byte by byte.
const SHAPES: &[(&str, fn(&Client, u32) -> Segment)] = &[
    ("a request", |client, cookie| client.get(cookie)),
    ("one byte", |client, cookie| client.get(cookie).payload("G")),
    ("without PSH", |client, cookie| {
        client.get(cookie).flags("A")
    }),
    ("with URG", |client, cookie| client.get(cookie).flags("PAU")),
    ("with CWR and ECE", |client, cookie| {
        client.get(cookie).flags("PAEC")
    }),
    ("with FIN", |client, cookie| client.get(cookie).flags("FPA")),
    ("FIN alone", |client, cookie| client.ack(cookie).flags("FA")),
    ("no timestamps", |client, cookie| {
        client.get(cookie).options([])
    }),
    ("SACK blocks", |client, cookie| {
        let blocks = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        client.get(cookie).options(blocks)
    }),
    ("forty bytes of options", |client, cookie| {
        client.get(cookie).options([1; 40])
    }),
    ("IP options", |client, cookie| {
        client.get(cookie).ip_options([0x94, 4, 0, 0])
    }),
    ("forty bytes of IP options", |client, cookie| {
        client.get(cookie).ip_options([1; 40])
    }),
    ("as big as our MSS allows", biggest),
];

#[test]
fn every_shape_is_carried_whole() {
    let node = Node::cs();
    for (name, shape) in SHAPES {
        let client = Client::fresh();
        let packet = shape(&client, node.cookie(&client));
        let seen = node.run(&packet.frame());
        seen.expect_of(name, Tx, ADOPTED);
        let sent = sent(&node, &seen);
        assert_eq!(sent.message, adopt(&client), "{name}");
        assert_eq!(sent.packet, packet.packet(), "{name}");
    }
}

#[test]
fn padding_is_not_part_of_the_packet() {
    let node = Node::cs();
    let client = Client::fresh();
    let get = client.get(node.cookie(&client)).payload("G").options([]);
    let seen = node.run(&padded(get.frame(), 5)).expect(Tx, ADOPTED);
    assert_eq!(seen.packet().padding, 5);
    assert_eq!(sent(&node, &seen).packet, get.packet());
}

#[test]
fn a_fin_at_once_is_noted() {
    let node = Node::cs();
    let client = Client::fresh();
    let get = client.get(node.cookie(&client)).flags("FPA");
    node.run(&get.frame()).expect(Tx, ADOPTED);
    assert_eq!(
        u32::from(node.tcb(&client).unwrap().state),
        TCB_ADOPTING | TCB_WAITING | TCB_FIN
    );
}

#[test]
fn what_is_too_big_to_wrap_is_dropped() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let fits = biggest(&client, cookie);
    let too_big = fits.clone().payload([&fits.payload[..], b"y"].concat());
    node.run(&too_big.frame())
        .expect(Drop, &[("cs_too_big", 1)]);
    assert!(node.tcb(&client).is_none(), "nobody was told to adopt it");
    node.run(&fits.frame()).expect(Tx, ADOPTED);
}

#[test]
fn where_the_server_speaks_first_the_ack_is_carried() {
    let node = Node::cs();
    let client = Client::of(SMTP);
    let ack = client.ack(node.cookie(&client));
    let seen = node.run(&ack.frame()).expect(Tx, ADOPTED);
    let sent_first = sent(&node, &seen);
    assert_eq!(sent_first.message, adopt(&client));
    assert_eq!(sent_first.packet, ack.packet());

    // The client's first data has the sequence numbers of the ACK before. It repeats the ADOPT, which may be lost.
    let words = ack.clone().flags("PA").payload("EHLO client\r\n");
    let seen = node
        .run(&words.frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    assert_eq!(sent(&node, &seen).packet, words.packet());
}

/// The data server's entry decides the verdict: by which way the packet goes there.
#[test]
fn it_goes_where_the_data_server_is() {
    let places: [(&str, fn(&mut DataServer), _); 3] = [
        ("on the interface it came from", |_| (), Tx),
        (
            "on another interface",
            |server| server.ifindex = 77,
            Redirect,
        ),
        (
            "this node",
            |server| server.flags = (DATA_SERVER_PRESENT | DATA_SERVER_LOCAL) as u8,
            Pass,
        ),
    ];
    for (name, place, verdict) in places {
        let node = Node::cs();
        node.set_choices(0, &[0, 0, 0]);
        let mut server = data_server(0);
        place(&mut server);
        node.plane().set_data_server(0, &server).unwrap();
        let client = Client::fresh();
        let get = client.get(node.cookie(&client));
        let seen = node.run(&get.frame());
        seen.expect_of(name, verdict, ADOPTED);
        assert_eq!(sent(&node, &seen).packet, get.packet(), "{name}");
        assert_eq!(seen.packet().ethernet.destination, ds_mac(0), "{name}");
    }
}

#[test]
fn without_a_data_server_a_first_request_is_reset() {
    let reset_by = |node: &Node, service| {
        for request in [GET, b"\x16\x03\x01"] {
            let client = Client::of(service);
            let packet = client.get(node.cookie(&client)).payload(request);
            node_run_reset(node, &packet, "cs_no_data_server");
            assert!(node.tcb(&client).is_none());
        }
    };
    let node = Node::cs();
    node.set_choices(0, &[0, 0, 0]);
    node.plane()
        .set_data_server(0, &DataServer::default())
        .unwrap();
    reset_by(&node, WEB);

    let node = Node::cs();
    node.set_choices(0, &[65535, 65535, 65535]);
    reset_by(&node, WEB);

    let node = Node::cs();
    let mut pool = node.routing().pool(HTTP_SERVICE).unwrap();
    pool.choices = 0;
    node.routing().set_pool(HTTP_SERVICE, &pool).unwrap();
    reset_by(&node, HTTP);
}

/// The second segment of a long request comes first. It gets no answer, and then the first segment is adopted.
#[test]
fn segments_in_the_wrong_order() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    let first = client.get(cookie);
    let second = client
        .later(cookie, GET.len(), 0)
        .flags("PA")
        .payload("Accept: */*\r\n\r\n");
    node.run(&second.frame()).expect(Tx, &[("cs_claim", 1)]);
    node.run(&first.frame()).expect(Tx, ADOPTED);
    // The second segment must not overtake the ADOPT, whatever queues the data server has, so it goes as a message
    // too.
    let seen = node
        .run(&second.frame())
        .expect(Tx, &[("cs_behind_adopt", 1)]);
    let message = sent(&node, &seen);
    let expected = Message::Forward {
        flow: flow(&client),
        next: None,
        attempt: 0,
    };
    assert_eq!(
        (message.message, message.packet),
        (expected, second.packet())
    );
    // A client that is so far ahead has got an acknowledgement, so the data server has the connection.
    let far = second.clone().seq(first.seq.wrapping_add(64 << 10));
    let bytes = far.packet().len() as u64;
    node.run(&far.frame())
        .expect(Tx, &[("cs_forward", 1), ("cs_forward_bytes", bytes)]);
}

#[test]
fn a_retransmitted_request_is_adopted_again_by_the_same() {
    let node = Node::cs();
    let client = Client::fresh();
    let get = client.get(node.cookie(&client));
    let adopted_before = [0, 1, 2].map(|index| node.connections(index));
    let first = node.run(&get.frame()).expect(Tx, ADOPTED);
    for _ in 0..3 {
        let again = node.run(&get.frame()).expect(Tx, &[("cs_adopt_again", 1)]);
        assert_eq!(again.packet().to(), first.packet().to());
        let sent = sent(&node, &again);
        assert_eq!(sent.message, adopt(&client));
        assert_eq!(sent.packet, get.packet());
    }
    let owner = node.tcb(&client).unwrap().owner;
    assert_eq!(
        node.connections(owner),
        adopted_before[usize::from(owner)] + 1
    );
}

/// A client may cut what it retransmits otherwise than at first.
#[test]
fn a_request_retransmitted_in_other_pieces() {
    let node = Node::cs();
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).payload("G").frame())
        .expect(Tx, ADOPTED);
    let seen = node
        .run(&client.get(cookie).frame())
        .expect(Tx, &[("cs_adopt_again", 1)]);
    assert_eq!(sent(&node, &seen).packet, client.get(cookie).packet());
    let entry = node.tcb(&client).unwrap();
    assert_eq!(
        entry.last_seq,
        client.isn.wrapping_add(1 + GET.len() as u32)
    );
}

/// The programs do not verify TCP checksums, because the data server's kernel does. A wrong checksum must stay wrong
/// on its way.
#[test]
fn a_wrong_checksum_stays_wrong() {
    let node = Node::cs();
    let client = Client::fresh();
    let get = client.get(node.cookie(&client)).frame();
    let broken = patched(get, TCP + 16, &[0xba, 0xad]);
    let seen = node.run(&broken).expect(Tx, ADOPTED);
    assert_eq!(seen.frame[114..], broken[14..]);
}

#[test]
fn the_attempt_of_a_first_adopt_is_none() {
    let node = Node::cs();
    let client = Client::of(WEB);
    let seen = node.run(&client.get(node.cookie(&client)).frame());
    let Message::Adopt { tcb, .. } = sent(&node, &seen).message else {
        panic!("{seen:?}");
    };
    assert_eq!((tcb.attempt, tcb.resume), (0, 0));
}

fn node_run_reset(node: &Node, packet: &Segment, counter: &str) -> Seen {
    let seen = node.run(&packet.frame()).expect(Tx, &[(counter, 1)]);
    let tcp = seen.packet().tcp().unwrap();
    assert_eq!(tcp.flags(), "R");
    assert_eq!(tcp.header.sequence_number, packet.ack);
    seen
}
