//! Requests that the owner of a connection keeps: if the owner dies, another data server goes on with the response.

use baton_abi::{KeptRequest, ROUTE_RESUME, RouteKey, SERVICE_PATHS, SERVICE_RESUME_REST, TcbKey};

use super::owner::{LET_IN, request};
use crate::prelude::*;

const KEPT: (&str, u64) = ("ds_request_kept", 1);
/// The flags of a service that has routes. `SERVICE_RESUME` is left out: with it, the program would also show the
/// daemon how responses begin.
const OTHERS: u32 = SERVICE_PATHS;
const REST: u32 = OTHERS | SERVICE_RESUME_REST;

/// An answered connection of a service with the flags `service`. Requests for `/ds1/` take a route with the flags
/// `route`.
fn owned(service: u32, route: u32) -> Live {
    let node = attached();
    let key = RouteKey::of(0, 0, b"/ds1/").unwrap();
    let lead = u32::from(first_pool_of_one()) | route;
    node.routing().set_routes(&[(key, lead)]).unwrap();
    Live::owned_as(node, service, if service == REST { &[KEPT] } else { &[] })
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n")
}

/// Returns the request that is kept of the packet's connection, if its response begins at the sequence number that the
/// packet acknowledges.
fn kept(live: &Live, packet: &Segment) -> Option<KeptRequest> {
    let heads = live.node.data_server().heads().unwrap();
    let flow = TcbKey::of(packet.from, WEB);
    heads.request_of(&flow, packet.ack).unwrap()
}

fn is_kept_as(live: &Live, packet: &Segment, pool: u16) {
    let found = kept(live, packet).expect("is kept");
    assert_eq!((found.request_seq, found.pool), (packet.seq, pool));
    assert_eq!(found.text[..found.bytes.into()], packet.payload);
}

/// The route of a request says whether the request is kept. If no route takes it, its service says so.
#[test]
fn requests_of_which_that_is_wanted() {
    for (service, route, target, pool) in [
        (OTHERS, 0, "/", None),
        (OTHERS, 0, "/ds1/", None),
        (OTHERS, ROUTE_RESUME, "/", None),
        (OTHERS, ROUTE_RESUME, "/ds1/", Some(first_pool_of_one())),
        (REST, 0, "/", Some(0)),
        (REST, 0, "/ds1/", None),
    ] {
        let _host = own_host();
        let live = owned(service, route);
        let packet = request(&live, get(target).as_bytes());
        live.forward(&packet);
        let counted = [LET_IN, if pool.is_some() { &[KEPT] } else { &[] }].concat();
        live.expect(&counted);
        match pool {
            Some(pool) => is_kept_as(&live, &packet, pool),
            None => assert_eq!(kept(&live, &packet), None, "{service} {route} {target}"),
        }
    }
}

/// Only a GET that may be done twice is kept, if it is all that its packet has and is not too long.
#[test]
fn requests_of_every_kind() {
    let long = |bytes: usize| {
        let rest = bytes - get("/").len() - "X: \r\n".len();
        get("/").replace("\r\n\r\n", &format!("\r\nX: {}\r\n\r\n", "a".repeat(rest)))
    };
    let cases: [(String, &[(&str, u64)]); 7] = [
        (get("/"), &[KEPT]),
        (long(1344), &[KEPT]),
        (long(1345), &[("ds_request_too_long", 1)]),
        (get("/").replace("GET", "HEAD"), &[]),
        (get("/").replace("GET", "POST"), &[]),
        (
            get("/").replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc"),
            &[],
        ),
        (get("/").repeat(2), &[("ds_door_cut", 1)]),
    ];
    for (text, counted) in cases {
        let _host = own_host();
        let live = owned(REST, 0);
        let packet = request(&live, text.as_bytes());
        live.forwards(&packet, &[LET_IN, counted].concat());
        assert_eq!(kept(&live, &packet).is_some(), counted == [KEPT], "{text}");
    }
}

/// A request that comes before the response to the one before is complete is not kept, because it is not known where
/// its response will begin.
#[test]
fn what_does_not_wait_for_its_answer_is_not_kept() {
    let _host = own_host();
    let mut live = owned(REST, 0);
    let first = request(&live, get("/a").as_bytes());
    live.forwards(&first, &[LET_IN, &[KEPT]].concat());
    live.sent += first.payload.len();
    let second = request(&live, get("/b").as_bytes());
    live.forwards(&second, LET_IN);
    is_kept_as(&live, &first, 0);
}

/// The request with which a connection is adopted is kept, too: its response begins with the byte that the client
/// expects next.
#[test]
fn the_first_request_is_kept_too() {
    let _host = own_host();
    let live = owned(REST, 0);
    let client = Client::fresh();
    let packet = client.get(COOKIE);
    send_adopt(&live.node, &packet);
    let (stream, _) = accept(&live.listener);
    live.expect(&[("ds_adopted", 1), ("ds_door_request", 1), KEPT]);
    expect_bytes(&stream, GET);
    is_kept_as(&live, &packet, 0);
    // The request kept before, of another connection, is unchanged.
    is_kept_as(&live, &live.client.get(COOKIE), 0);
}
