//! BEGINS of connections that this node's own data server has: what ends one comes up to the daemon, which resets the
//! client.

use baton_abi::{
    BEGINS_AGAIN, LCCP_TCB_STRICT, NO_DATA_SERVER, SERVICE_HANDOVER, SERVICE_STRICT, Tcb,
};
use baton_wire::{Keep, Message};

use super::entry::{HERE, from_self};
use crate::{
    cluster::{ARRIVES_AT, CS},
    ds::loopback::{COOKIE, Live, expect_bytes, hands_over},
    host::on_own_host,
    lccp::{flow, sent},
    node::{Counted, Drop, Node, Pass},
    segment::GET,
};

const CLOSED: Counted<'_> = &[("cs_closed_changed", 1), ("ds_missing", 1)];
const MISSING: Counted<'_> = &[("cs_missing", 1), ("ds_missing", 1)];

/// So often a packet may get lost.
const TRIES: usize = 3;

#[test]
fn what_never_comes_to_its_owner_ends_the_connection() {
    on_own_host(|| {
        let node = Node::attached_both(ARRIVES_AT);
        hands_over(&node, SERVICE_STRICT & !SERVICE_HANDOVER);
        let live = Live::adopted_at(node);
        let (node, client) = (&live.node, &live.client);
        expect_bytes(&live.stream, GET);
        let next = client.later(COOKIE, GET.len(), 0).seq;
        let tcb = Tcb {
            request_seq: client.get(COOKIE).seq,
            next_request: next,
            last_seq: next.wrapping_add(10),
            owner: HERE,
            previous: NO_DATA_SERVER as u16,
            options: LCCP_TCB_STRICT as u8,
            ..Tcb::default()
        };
        node.plane().set_tcb(&node.tcb_key(client), &tcb).unwrap();
        let again = client.later(COOKIE, GET.len(), 0).flags("PA");
        let again = again.payload(b"x".to_vec());
        let message = Message::Begins {
            flow: flow(client),
            how: BEGINS_AGAIN as u8,
        };
        let frame = from_self(node, &message, &again.packet());
        for _ in 1..TRIES {
            node.run(&frame).expect(Drop, MISSING);
        }
        let seen = node.run(&frame).expect(Pass, CLOSED);
        let message = sent(node, &seen);
        assert_eq!(message.to, CS);
        assert_eq!(message.from, *client.address.ip());
        let expected = Message::Begun {
            flow: flow(client),
            keep: Keep::Missing,
            at: next,
            responses: 0,
        };
        assert_eq!(message.message, expected);
        assert_eq!(message.packet, again.packet());
        assert!(node.tcb(client).is_none());
    });
}
