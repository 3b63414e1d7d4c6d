//! Connections of the service whose requests any data server may get, as their clients see them.

use baton_abi::{RouteKey, TCB_ADOPTING, TCB_AT_DOOR, TCB_WAITING, Tcb};

use crate::prelude::*;

/// The number of bytes that a data server has answered to each request.
pub const ANSWER: u32 = 1000;

/// Pairs of paths that would have the same hash under a multiplicative hash without a key. Finding them needs no
/// secret.
pub const COLLIDED_WITHOUT_A_KEY: [[&str; 2]; 3] = [
    ["/jebo1gx8c5genrj", "/s8gcsj1jqz473ia"],
    ["/wh5b99im7ntnyty", "/zm31stlpns9sc4j"],
    ["/a02uclgrrnpsm2w", "/pm0urbo5bb946xr"],
];

/// A client with the numbers of the segment that it would send next.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub client: Client,
    pub seq: u32,
    pub ack: u32,
}

impl Connection {
    /// Opens a connection whose first packet is `request`, and checks that the request was sent as ADOPT.
    #[track_caller]
    pub fn open(node: &Node, request: impl Into<Vec<u8>>) -> Self {
        let client = Client::of(HTTP);
        let cookie = node.cookie(&client);
        let first = client.get(cookie).payload(request);
        let mut connection = Self {
            client,
            seq: first.seq,
            ack: first.ack,
        };
        let seen = connection.send(node, &first);
        assert_eq!((seen.verdict, seen.counted.get("cs_adopt")), (Tx, Some(&1)));
        let state = u32::from(connection.entry(node).state) & !TCB_AT_DOOR;
        assert_eq!(state, TCB_ADOPTING | TCB_WAITING);
        connection
    }

    /// Opens a connection of which the first data server has answered one request.
    #[track_caller]
    pub fn answered(node: &Node) -> Self {
        let mut connection = Self::open(node, get("/ds1/"));
        connection.ack = connection.ack.wrapping_add(ANSWER);
        connection
    }

    /// The client's next segment, with this payload.
    pub fn data(&self, payload: impl Into<Vec<u8>>) -> Segment {
        self.empty().flags("PA").payload(payload)
    }

    pub fn empty(&self) -> Segment {
        Segment {
            seq: self.seq,
            ack: self.ack,
            ..self.client.ack(0)
        }
    }

    /// Sends a segment, which must have the connection's next sequence number.
    #[track_caller]
    pub fn send(&mut self, node: &Node, segment: &Segment) -> Seen {
        assert_eq!(segment.seq, self.seq);
        self.seq = self.seq.wrapping_add(segment.payload.len() as u32);
        node.run(&segment.frame())
    }

    #[track_caller]
    pub fn entry(&self, node: &Node) -> Tcb {
        node.tcb(&self.client).unwrap()
    }

    /// Checks that the entry is unchanged, except for the time of its last packet, which a tick of the clock may
    /// change.
    #[track_caller]
    pub fn is_unchanged(&self, node: &Node, before: &Tcb) {
        let now = Tcb {
            seen: before.seen,
            ..self.entry(node)
        };
        assert_eq!(now, *before);
    }
}

/// Routes `/ds1/`, `/ds2/` and `/ds3/` to one data server each. Every other path goes to any data server.
pub fn routes_by_name(node: &Node) {
    routes_with(node, 0);
}

/// Sets the routes of `routes_by_name()`, with these flags.
pub fn routes_with(node: &Node, flags: u32) {
    let routes: Vec<_> = (0..3u16)
        .map(|index| {
            let path = format!("/ds{}/", index + 1);
            let pool = u32::from(first_pool_of_one() + index);
            (route(0, &path), pool | flags)
        })
        .collect();
    node.routing().set_routes(&routes).unwrap();
}

pub fn route(host: u16, path: &str) -> RouteKey {
    RouteKey::of(HTTP_SERVICE, host, path.as_bytes()).unwrap()
}

pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 10.77.0.100\r\n\r\n")
}

/// The counters that a packet moves if it is forwarded unchanged.
pub fn forwarded(packet: &Segment) -> Vec<(&'static str, u64)> {
    let bytes = packet.packet().len() as u64;
    vec![("cs_forward", 1), ("cs_forward_bytes", bytes)]
}

/// The counters of a forwarded packet, and `counter` once in addition.
pub fn forwarded_and(counter: &'static str, packet: &Segment) -> Vec<(&'static str, u64)> {
    [&[(counter, 1)][..], &forwarded(packet)].concat()
}
