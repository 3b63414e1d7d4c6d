//! Clients that announce that they will send to their data servers themselves.

use baton_abi::{LCCP_TCB_AWARE, SERVICE_DIRECT, SERVICE_OWNER, Service, ServiceKey, Tcb};

use crate::{
    connection_server::sweep::{CLOSING, IDLE, key, tick_now, ticks},
    prelude::*,
};

/// The offset of `lccp_tcb.options` in a message's frame.
const OPTIONS_AT: usize = 14 + 20 + 52;
const AWARE: [u8; 8] = [253, 8, b'B', b'T', b'N', 1, 0, 0];

fn node(direct: bool) -> Node {
    let node = Node::fresh_cs();
    let flags = SERVICE_OWNER | if direct { SERVICE_DIRECT } else { 0 };
    let service = Service {
        id: HTTP_SERVICE,
        pool: HTTP_SERVICE,
        flags: flags as u16,
        ..Service::default()
    };
    let key = ServiceKey::of(HTTP);
    node.plane().set_service(&key, &service).unwrap();
    node
}

/// The first request of a client, with these options behind its timestamps, if it has timestamps.
fn first(node: &Node, timestamps: bool, options: &[u8]) -> (Client, Segment) {
    let client = Client::of(HTTP);
    let get = client.get(node.cookie(&client));
    let before = if timestamps {
        get.options.clone()
    } else {
        Vec::new()
    };
    (client, get.options([&before[..], options].concat()))
}

/// ADOPT has the data server tell the client where to send.
#[test]
fn an_aware_client_is_known_by_its_first_data() {
    let node = node(true);
    for timestamps in [true, false] {
        let (client, get) = first(&node, timestamps, &AWARE);
        let counted = [("cs_adopt", 1), ("cs_aware", 1)];
        let seen = node.run(&get.frame()).expect(Tx, &counted);
        let entry = node.tcb(&client).unwrap();
        assert_ne!(u32::from(entry.options) & LCCP_TCB_AWARE, 0);
        let sent = sent(&node, &seen);
        assert_eq!(sent.packet, get.packet());
        let options = seen.frame[OPTIONS_AT];
        assert_eq!(options, entry.options, "lccp_tcb.options");

        // The repeated ADOPT has the same option, because the first one may have been lost.
        let again = node.run(&get.frame()).expect(Tx, &[("cs_adopt_again", 1)]);
        assert_eq!(again.frame[OPTIONS_AT], options);
    }
}

#[test]
fn all_others_are_served_as_ever() {
    let almost = |at: usize, byte: u8| {
        let mut option = AWARE;
        option[at] = byte;
        option.to_vec()
    };
    for (name, direct, options) in [
        ("a service where clients are not", false, AWARE.to_vec()),
        ("no option", true, vec![]),
        ("another kind", true, almost(0, 254)),
        ("another experiment", true, almost(2, b'E')),
        ("another version", true, almost(5, 2)),
        ("not the last", true, [&AWARE[..], &[1, 1, 1, 1]].concat()),
        ("a part of it", true, AWARE[4..].to_vec()),
    ] {
        let node = node(direct);
        let (client, get) = first(&node, true, &options);
        node.run(&get.frame()).expect(Tx, &[("cs_adopt", 1)]);
        let entry = node.tcb(&client).expect(name);
        assert_eq!(u32::from(entry.options) & LCCP_TCB_AWARE, 0, "{name}");
    }
}

#[test]
fn its_entry_is_forgotten_soon() {
    let node = Node::fresh_cs();
    for (number, (age, live)) in [(0, true), (5, true), (30, false), (3000, false)]
        .into_iter()
        .enumerate()
    {
        let key = key(number as u8);
        let tcb = Tcb {
            seen: tick_now().wrapping_sub(ticks(age)),
            options: LCCP_TCB_AWARE as u8,
            ..Tcb::default()
        };
        node.connection_server().set_tcb(&key, &tcb).unwrap();
        let swept = node.connection_server().sweep(IDLE, CLOSING).unwrap();
        assert_eq!(swept.expired, u32::from(!live), "{age} s");
        assert_eq!(
            node.connection_server().tcb(&key).unwrap().is_some(),
            live,
            "{age} s"
        );
    }
}
