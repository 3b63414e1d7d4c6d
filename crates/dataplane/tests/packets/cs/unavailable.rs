//! No data server is there at all, so nobody can tell a client in words: a RST.

use super::http::get;
use crate::{
    cluster::{HTTP, HTTP_SERVICE},
    node::{Counted, Node, Tx},
    segment::Client,
};

#[test]
fn to_a_first_request() {
    let node = Node::cs();
    let mut pool = node.plane().pool(HTTP_SERVICE).unwrap();
    pool.choices = 0;
    node.plane().set_pool(HTTP_SERVICE, &pool).unwrap();
    for request in [get("/").into_bytes(), b"\x16\x03\x01".to_vec()] {
        let client = Client::of(HTTP);
        let packet = client.get(node.cookie(&client)).payload(request);
        let counted: Counted<'_> = &[("cs_no_data_server", 1)];
        let seen = node.run(&packet.frame()).expect(Tx, counted);
        assert_eq!(seen.packet().tcp().unwrap().flags(), "R");
        assert!(node.tcb(&client).is_none());
    }
}
