//! Requests whose method the program does not know: user space says where they go, and where they end.

use std::time::Duration;

use baton_abi::SERVICE_PUNTS;
use baton_dataplane::{Findings, Lead, Punts, RequestLength, Resumed};

use super::{HEAD, prepared};
use crate::{
    cluster::{HTTP, first_pool_of_one},
    cs::http::Connection,
    node::{Counted, Drop, Node, Tx},
    segment::Client,
};

const PUNTED: Counted<'_> = &[("cs_punted", 1), ("cs_target", 1)];

fn request() -> String {
    format!("M-SEARCH /ds1/ HTTP/1.1\r\n{HEAD}\r\n")
}

fn judged(node: &Node) -> Punts {
    node.change_flags(|flags| flags | SERVICE_PUNTS);
    let punts = node.plane().punts().unwrap();
    punts.give_sign(Duration::from_secs(3600)).unwrap();
    punts
}

/// What the program makes of what it has shown, once it is told that this is so long.
fn resume(punts: &Punts, length: Option<RequestLength>) -> Resumed {
    let read: Vec<_> = punts.wait(Duration::from_secs(5)).unwrap().collect();
    let lead = Lead {
        pool: first_pool_of_one(),
        route: 100,
        resumes: false,
    };
    let findings = Findings {
        length,
        ..Findings::default()
    };
    (punts.resume_by(&read[0], Some(lead), None, findings)).unwrap()
}

fn whole() -> Option<RequestLength> {
    Some(RequestLength::Bytes {
        head: request().len() as u32,
        body: 0,
    })
}

#[test]
fn it_goes_where_user_space_says() {
    let node = prepared();
    let punts = judged(&node);
    let connection = Connection::answered(&node);
    let packet = connection.data(request());
    node.run(&packet.frame()).expect(Drop, PUNTED);
    node.look();
    let Resumed::Leaves(_) = resume(&punts, whole()) else {
        panic!("it stays");
    };
    let entry = connection.entry(&node);
    let end = packet.seq.wrapping_add(request().len() as u32);
    assert_eq!((entry.owner, entry.next_request), (0, end));
    assert_eq!(node.moved().get("cs_begins"), None);
}

/// Else what is behind it would go unread to its server; or, on a connection that lives, its owner be asked again and
/// again whether it begins there.
#[test]
fn without_an_end_it_is_closed() {
    for length in [
        None,
        Some(RequestLength::Chunked(request().len() as u32 - 1)),
    ] {
        let node = prepared();
        let punts = judged(&node);
        let connection = Connection::answered(&node);
        node.run(&connection.data(request()).frame())
            .expect(Drop, PUNTED);
        node.look();
        resume(&punts, length);
        let counted = node.moved();
        assert_eq!(counted.get("cs_closed_unread"), Some(&1), "{counted:?}");
        assert_eq!(counted.get("cs_begins"), None);
    }
}

#[test]
fn without_an_end_it_begins_no_connection() {
    let node = prepared();
    let punts = judged(&node);
    let client = Client::of(HTTP);
    let first = client.get(node.cookie(&client)).payload(request());
    node.run(&first.frame()).expect(Drop, PUNTED);
    node.look();
    resume(&punts, None);
    let counted = node.moved();
    assert_eq!(counted.get("cs_adopt"), None, "{counted:?}");
    assert_eq!(counted.get("cs_target_refused"), Some(&1), "{counted:?}");
    assert!(node.tcb(&client).is_none());
}

/// Nobody can ever say where it leads: its connection ends, and that is counted as what it is.
#[test]
fn a_further_one_that_is_too_long_to_be_shown() {
    let node = prepared();
    node.change(|settings| settings.mss = 16_000);
    let _punts = judged(&node);
    let connection = Connection::answered(&node);
    let long = "x".repeat(9700);
    let packet = connection.data(format!("GET //ds1/{long} HTTP/1.1\r\n{HEAD}\r\n"));
    let counted: Counted<'_> = &[
        ("cs_closed_unread", 1),
        ("cs_punt_too_big", 1),
        ("cs_target_too_big", 1),
    ];
    node.run(&packet.frame()).check(Tx, counted).unwrap();
}
