//! RELEASE of connections that this node's own data server has, on a live loopback.

use std::io::{ErrorKind, Read as _};

use super::entry::{HERE, enter, owners};
use crate::{
    cluster::{ARRIVES_AT, CS, ds, ds_mac},
    ds::loopback::{Live, expect, send},
    host::on_own_host,
    lccp::{adopt, opened, release},
    node::Node,
};

fn attached() -> Node {
    Node::attached_both(ARRIVES_AT)
}

#[test]
fn an_idle_connection_goes_to_the_next() {
    on_own_host(|| {
        let live = Live::answered_at(attached());
        let ack = live.ack().options([1; 12]);
        enter(&live.node, &live.client, &live.ack(), 1, HERE);
        send(&live.node, &release(&live.client, 1), &ack);
        expect(&live.node, &[("ds_released", 1)]);
        let packet = live.wire.next();
        assert_eq!(packet.ethernet.destination, ds_mac(1));
        let message = opened(&live.node, &packet);
        assert_eq!((message.from, message.to), (CS, ds(1)));
        assert_eq!(message.message, adopt(&live.client));
        assert_eq!(message.packet, live.ack().packet());
        assert_eq!(owners(&live.node, &live.client), (1, HERE));
        let error = (&live.stream).read(&mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    });
}

/// The entry says so at once.
#[test]
fn one_that_is_not_idle_stays() {
    on_own_host(|| {
        let live = Live::answered_at(attached());
        let mut ack = live.ack().options([1; 12]);
        ack.ack -= 1;
        enter(&live.node, &live.client, &live.ack(), 1, HERE);
        send(&live.node, &release(&live.client, 1), &ack);
        expect(&live.node, &[("ds_release_refused", 1), ("cs_kept", 1)]);
        assert_eq!(owners(&live.node, &live.client), (HERE, 1));
    });
}
