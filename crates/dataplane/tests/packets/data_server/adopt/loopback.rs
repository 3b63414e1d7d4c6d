//! The program attached to the loopback of a private namespace, and messages sent through it.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use baton_abi::{DataServer, SERVICE_OWNER, Service, ServiceKey};
use baton_wire::{Address, Message, NodePair, encode};
use etherparse::{IpNumber, TcpSlice};

use crate::{
    cluster::{ARRIVES_AT, CLUSTER, CS, CS_MAC, WEB, ds, ds_mac, key, peer},
    host::{accept, listen, send_lccp_from},
    lccp::{self, Sent, adopt, opened},
    node::{Counted, Node},
    read::Packet,
    segment::{Client, GET, Segment},
    sniff::Wire,
};

pub const ADOPTED: Counted<'_> = &[("ds_adopted", 1), ("ds_door_request", 1)];
pub const FORWARDED: Counted<'_> = &[("ds_forwarded", 1)];
/// The connection server's cookie.
pub const COOKIE: u32 = 0xfeed_0001;

/// The namespace's loopback with the program on it.
pub fn attached() -> Node {
    let node = Node::attached_ds(ARRIVES_AT);
    assert_eq!(*WEB.ip(), CLUSTER);
    owns(&node, 0);
    node
}

/// The doors of WEB judge requests, and it has these flags besides.
pub fn owns(node: &Node, flags: u32) {
    let service = Service {
        flags: (SERVICE_OWNER | flags) as u16,
        ..Service::default()
    };
    node.plane()
        .set_service(&ServiceKey::of(WEB), &service)
        .unwrap();
}

/// Nobody judges what is said to WEB, as where a service has one pool, and its connections stay.
pub fn judges_nothing(node: &Node) {
    (node
        .plane()
        .set_service(&ServiceKey::of(WEB), &Service::default()))
    .unwrap();
}

pub fn adopted(node: &Node, listener: &TcpListener, client: &Client) -> TcpStream {
    adopted_so(node, listener, client, ADOPTED)
}

/// The same, and so it is counted.
fn adopted_so(
    node: &Node,
    listener: &TcpListener,
    client: &Client,
    counted: Counted<'_>,
) -> TcpStream {
    send_adopt(node, &client.get(COOKIE));
    let (stream, from) = accept(listener);
    assert_eq!(from, SocketAddr::V4(client.address));
    expect(node, counted);
    stream
}

/// A data server, its listener, and one connection that has come so far: its client has had an answer to
/// its request, and acknowledged it.
pub struct Live {
    pub node: Node,
    pub listener: TcpListener,
    pub wire: Wire,
    pub client: Client,
    pub stream: TcpStream,
    /// What the server writes each time.
    pub answer: &'static [u8],
    /// Whether acknowledgements leave that are not looked at.
    pub has_acks: bool,
    pub sent: usize,
    /// How often the server has answered, or is to have when the client acknowledges.
    pub answers: u32,
}

/// What the server answers to each request.
pub const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// The first part of an answer, and whatever else the server writes is a part of it too.
pub const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";

impl Live {
    /// The connection server and the next data server are where [`Live::wire`] sees what they get.
    pub fn answered() -> Self {
        Self::answered_at(attached())
    }

    /// The same at this node.
    pub fn answered_at(node: Node) -> Self {
        Self::answered_with(node, ANSWER)
    }

    /// The same, but the response goes on.
    pub fn answering() -> Self {
        Self::answering_at(attached())
    }

    /// The same at this node.
    pub fn answering_at(node: Node) -> Self {
        owns(&node, 0);
        Self::answered_with(node, BEGINNING)
    }

    fn answered_with(node: Node, answer: &'static [u8]) -> Self {
        let mut live = Self::adopted_at(node);
        live.answer = answer;
        expect_bytes(&live.stream, GET);
        live.answer();
        live
    }

    /// The same, but the server has not even read the request.
    pub fn adopted() -> Self {
        Self::adopted_at(attached())
    }

    /// The same at this node, which is attached to the loopback.
    pub fn adopted_at(node: Node) -> Self {
        Self::adopted_so(node, ADOPTED)
    }

    /// An answered connection whose owner, this node, sees to whose its requests are: WEB has these flags besides.
    pub fn owned(node: Node, flags: u32) -> Self {
        Self::owned_as(node, flags, &[])
    }

    /// The same, and its first request counts for this too.
    pub fn owned_as(node: Node, flags: u32, counted: Counted<'_>) -> Self {
        owns(&node, flags);
        let mut live = Self::adopted_so(node, &[ADOPTED, counted].concat());
        expect_bytes(&live.stream, GET);
        live.answer();
        live
    }

    fn adopted_so(node: Node, counted: Counted<'_>) -> Self {
        let listener = listen(WEB);
        for (address, mac) in [(CS, CS_MAC), (ds(1), ds_mac(1))] {
            if node.is_at(address) {
                continue;
            }
            let way = DataServer {
                ifindex: Wire::interface(),
                ..peer(mac)
            };
            node.data_server().set_peer(address, &way).unwrap();
        }
        let client = Client::fresh();
        let stream = adopted_so(&node, &listener, &client, counted);
        Self {
            node,
            listener,
            wire: Wire::tapped(),
            client,
            stream,
            answer: ANSWER,
            has_acks: false,
            sent: GET.len(),
            answers: 1,
        }
    }

    /// Another connection of this data server comes as far as the first one has.
    pub fn another(&mut self) {
        self.client = Client::fresh();
        self.stream = adopted(&self.node, &self.listener, &self.client);
        (self.sent, self.answers) = (GET.len(), 1);
        expect_bytes(&self.stream, GET);
        self.answer();
    }

    /// The server answers, and the client acknowledges all of it.
    fn answer(&mut self) {
        self.write();
        forward(&self.node, &self.ack());
        expect(&self.node, FORWARDED);
    }

    /// The server answers.
    pub fn write(&mut self) {
        (&self.stream).write_all(self.answer).unwrap();
        assert_eq!(self.response().payload(), self.answer);
    }

    /// What the server writes next, as the kernel sends it.
    #[track_caller]
    pub fn response(&self) -> Response {
        loop {
            let response = Response(self.wire.next());
            if !response.payload().is_empty() {
                return response;
            }
        }
    }

    /// The next segment to the client, as the kernel sends it.
    #[track_caller]
    pub fn said(&self) -> Response {
        loop {
            let packet = self.wire.next();
            if packet.to() == *self.client.address.ip() {
                return Response(packet);
            }
        }
    }

    /// The client has nothing to say but that it has one answer.
    pub fn ack(&self) -> Segment {
        self.client
            .later(COOKIE, self.sent, self.answers * self.answer.len() as u32)
    }

    /// The client's next request.
    pub fn request(&self) -> Segment {
        self.ack().flags("PA").payload(GET)
    }

    /// The server has got a request of so many bytes more, answers it too, and the client acknowledges that.
    pub fn answer_another(&mut self, bytes: usize) {
        self.sent += bytes;
        self.write();
        self.answers += 1;
        forward(&self.node, &self.ack());
        expect(&self.node, FORWARDED);
    }

    /// The next message on the wire is from here to `to`, which has this MAC address.
    #[track_caller]
    pub fn message_to(&self, to: Ipv4Addr, mac: [u8; 6]) -> Sent {
        let mut packet = self.wire.next();
        while self.has_acks && packet.ip.protocol == IpNumber::TCP {
            assert!(Response(packet).payload().is_empty());
            packet = self.wire.next();
        }
        assert_eq!(packet.ethernet.destination, mac, "{packet:?}");
        assert_eq!(packet.ethernet.source, ds_mac(0));
        let message = opened(&self.node, &packet);
        assert_eq!((message.from, message.to), (ds(0), to));
        message
    }

    /// Nothing else was sent until now: what is sent now is the next.
    #[track_caller]
    pub fn nothing_sent(&self) {
        let stranger = Client::fresh().later(COOKIE, 1, 1);
        forward(&self.node, &stranger);
        expect(&self.node, &[("ds_none", 1)]);
        let message = self.message_to(CS, CS_MAC);
        assert_eq!(message.packet, stranger.packet());
    }
}

/// A segment of the host's kernel, whose checksum the interface would have completed.
pub struct Response(Packet);

impl Response {
    pub fn segment(&self) -> TcpSlice<'_> {
        TcpSlice::from_slice(&self.0.body).unwrap()
    }

    pub fn payload(&self) -> &[u8] {
        self.segment().payload()
    }
}

pub fn send_adopt(node: &Node, packet: &Segment) {
    let client = Client {
        address: packet.from,
        service: packet.to,
        isn: 0,
    };
    send(node, &adopt(&client), packet);
}

pub fn forward(node: &Node, packet: &Segment) {
    let client = Client {
        address: packet.from,
        service: packet.to,
        isn: 0,
    };
    send(node, &lccp::forward(&client), packet);
}

/// A packet that was broken on its way: its checksum is wrong.
pub fn forward_broken(node: &Node, packet: &Segment) {
    const CHECKSUM_AT: usize = 36;
    let client = Client {
        address: packet.from,
        service: packet.to,
        isn: 0,
    };
    let mut bytes = packet.packet();
    bytes[CHECKSUM_AT] ^= 1;
    send_bytes(node, &lccp::forward(&client), &bytes);
}

pub fn send(node: &Node, message: &Message, packet: &Segment) {
    send_bytes(node, message, &packet.packet());
}

/// An ADOPT that another data server sends.
pub fn send_adopt_from_data_server(node: &Node, client: &Client, packet: &Segment) {
    send_bytes_from(ds(1), node, &adopt(client), &packet.packet());
}

fn send_bytes(node: &Node, message: &Message, packet: &[u8]) {
    send_bytes_from(CS, node, message, packet);
}

fn send_bytes_from(from: Ipv4Addr, node: &Node, message: &Message, packet: &[u8]) {
    let own = Address::from_octets(node.plane().settings().unwrap().address);
    let IpAddr::V4(own) = own.ip() else {
        panic!("{own:?}")
    };
    let pair = NodePair { from, to: own };
    let bytes = encode(message, packet, node.now(), &key().lccp(), pair);
    send_lccp_from(from, own, &bytes);
}

/// How the daemon of this node sends a packet in: by this interface, as this frame.
pub const LOOPBACK: u32 = 1;

pub fn frame_here(packet: &Segment) -> Vec<u8> {
    const ETHERNET: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    [&ETHERNET[..], &packet.packet()].concat()
}

/// Exactly these counters have moved since the last look; packets may still be on their way.
#[track_caller]
pub fn expect(node: &Node, counted: Counted<'_>) {
    has_counted(node, counted).unwrap_or_else(|error| panic!("{error}"));
}

/// The same, or what else has moved.
pub fn has_counted(node: &Node, counted: Counted<'_>) -> Result<(), String> {
    let until = Instant::now() + Duration::from_secs(5);
    let mut moved = node.moved();
    let expected = |moved: &BTreeMap<String, u64>| {
        moved.len() == counted.len()
            && counted
                .iter()
                .all(|(name, by)| moved.get(*name) == Some(by))
    };
    while !expected(&moved) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
        moved = node.moved();
    }
    node.look();
    if expected(&moved) {
        return Ok(());
    }
    Err(format!("expected {counted:?}, saw {moved:?}"))
}

/// This counter has moved since the last look, whatever else has.
#[track_caller]
pub fn await_counted(node: &Node, name: &str) {
    let until = Instant::now() + Duration::from_secs(5);
    while !node.moved().contains_key(name) {
        assert!(Instant::now() < until, "no {name}: {:?}", node.moved());
        thread::sleep(Duration::from_millis(1));
    }
}

pub fn expect_bytes(mut stream: &TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, expected);
}
