//! ICMP errors about responses go to the connection server that has the connection.

use super::goes_to;
use crate::{
    connection_server::frames::icmp::{error, response},
    prelude::*,
};

#[test]
fn it_goes_where_the_connection_is() {
    let node = Node::switch();
    for _ in 0..20 {
        let client = Client::fresh();
        let server = goes_to(&node, &client.syn().frame(), &[("switch_syn", 1)]);
        let frame = error(3, 4, &response(&client).packet());
        let counted = [("switch_icmp", 1)];
        assert_eq!(goes_to(&node, &frame, &counted), server);
    }
}

/// An ICMP message that is not an error about a service's packet passes to the kernel.
#[test]
fn others_are_the_kernels() {
    let node = Node::switch();
    let another = Segment {
        from: "10.77.0.101:80".parse().unwrap(),
        ..response(&Client::fresh())
    };
    let about_another = error(3, 4, &another.packet());
    let echo = error(8, 0, &response(&Client::fresh()).packet());
    let cut = error(3, 4, &response(&Client::fresh()).packet()[..20]);
    for frame in [about_another, echo, cut] {
        node.run(&frame).expect(Pass, &[]).untouched();
    }
}
