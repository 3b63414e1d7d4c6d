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

use crate::{lccp, prelude::*};

pub const ADOPTED: Counted<'_> = &[("ds_adopted", 1), ("ds_door_request", 1)];
pub const FORWARDED: Counted<'_> = &[("ds_forwarded", 1)];
/// The connection server's cookie.
pub const COOKIE: u32 = 0xfeed_0001;

/// Returns data server 0 with its program attached to the namespace's loopback. The service WEB has a door.
pub fn attached() -> Node {
    let node = Node::attached_ds(ARRIVES_AT);
    assert_eq!(*WEB.ip(), CLUSTER);
    owns(&node, 0);
    node
}

/// Gives the service WEB a door, which judges its requests, and sets these flags as well.
pub fn owns(node: &Node, flags: u32) {
    let service = Service {
        flags: (SERVICE_OWNER | flags) as u16,
        ..Service::default()
    };
    node.plane()
        .set_service(&ServiceKey::of(WEB), &service)
        .unwrap();
}

/// Takes the door from the service WEB, as where a service has one pool: no request is judged, and connections stay at
/// this data server.
pub fn judges_nothing(node: &Node) {
    (node
        .plane()
        .set_service(&ServiceKey::of(WEB), &Service::default()))
    .unwrap();
}

pub fn adopted(node: &Node, listener: &TcpListener, client: &Client) -> TcpStream {
    adopted_so(node, listener, client, ADOPTED)
}

/// Like [`adopted`], but expects that exactly the counters `counted` move.
fn adopted_so(
    node: &Node,
    listener: &TcpListener,
    client: &Client,
    counted: Counted<'_>,
) -> TcpStream {
    send_adopt(node, &client.get(COOKIE));
    let (stream, from) = accept(listener);
    assert_eq!(from, SocketAddr::V4(client.address));
    node.expect(counted);
    stream
}

/// A data server, its listener, and one adopted connection. If the constructor does not say otherwise, the server has
/// answered the first request, and the client has acknowledged the answer.
pub struct Live {
    pub node: Node,
    pub listener: TcpListener,
    pub wire: Wire,
    pub client: Client,
    pub stream: TcpStream,
    /// What the server writes as each of its answers.
    pub answer: &'static [u8],
    /// Whether segments without data may be on the wire, which [`Live::message_to`] then skips.
    pub has_acks: bool,
    /// Number of bytes that the client has sent.
    pub sent: usize,
    /// Number of answers that [`Live::ack`] acknowledges. The server may still have to write the last one.
    pub answers: u32,
}

/// What the server answers to each request.
pub const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// The first part of an answer. Whatever else the server writes is a part of the same answer.
pub const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";

impl Live {
    /// Returns a connection whose first request is answered. [`Live::wire`] sees what is sent to the connection server
    /// and to data server 1.
    pub fn answered() -> Self {
        Self::answered_at(attached())
    }

    /// Like [`Live::answered`], at this node.
    pub fn answered_at(node: Node) -> Self {
        Self::answered_with(node, ANSWER)
    }

    /// Like [`Live::answered`], but the response goes on: the server has written only [`BEGINNING`].
    pub fn answering() -> Self {
        Self::answering_at(attached())
    }

    /// Like [`Live::answering`], at this node, whose service WEB gets a door.
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

    /// Returns a connection whose server has not even read the request.
    pub fn adopted() -> Self {
        Self::adopted_at(attached())
    }

    /// Like [`Live::adopted`], at this node, which is attached to the loopback.
    pub fn adopted_at(node: Node) -> Self {
        Self::adopted_so(node, ADOPTED)
    }

    /// Returns an answered connection at this node. The service WEB gets a door, which judges whose each request is,
    /// and these flags as well.
    pub fn owned(node: Node, flags: u32) -> Self {
        Self::owned_as(node, flags, &[])
    }

    /// Like [`Live::owned`], but the first request also moves the counters `counted`.
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

    /// Begins another connection of this data server in place of the one before: its first request is answered as well.
    pub fn another(&mut self) {
        self.client = Client::fresh();
        self.stream = adopted(&self.node, &self.listener, &self.client);
        (self.sent, self.answers) = (GET.len(), 1);
        expect_bytes(&self.stream, GET);
        self.answer();
    }

    /// Does what [`Node::forward`] does.
    pub fn forward(&self, packet: &Segment) {
        self.node.forward(packet);
    }

    /// Does what [`Node::forwards`] does.
    #[track_caller]
    pub fn forwards(&self, packet: &Segment, counted: Counted<'_>) {
        self.node.forwards(packet, counted);
    }

    /// Does what [`Node::adopts`] does.
    #[track_caller]
    pub fn adopts(&self, packet: &Segment, counted: Counted<'_>) {
        self.node.adopts(packet, counted);
    }

    /// Does what [`Node::expect`] does.
    #[track_caller]
    pub fn expect(&self, counted: Counted<'_>) {
        self.node.expect(counted);
    }

    /// Has the server write its answer, and the client acknowledge all of it.
    fn answer(&mut self) {
        self.write();
        self.forwards(&self.ack(), FORWARDED);
    }

    /// Has the server write its answer, which the kernel sends as one segment.
    pub fn write(&mut self) {
        (&self.stream).write_all(self.answer).unwrap();
        assert_eq!(self.response().payload(), self.answer);
    }

    /// Returns the next segment with data that the kernel sends.
    #[track_caller]
    pub fn response(&self) -> Response {
        loop {
            let response = Response(self.wire.next());
            if !response.payload().is_empty() {
                return response;
            }
        }
    }

    /// Returns the next segment that the kernel sends to the client, with or without data.
    #[track_caller]
    pub fn said(&self) -> Response {
        loop {
            let packet = self.wire.next();
            if packet.to() == *self.client.address.ip() {
                return Response(packet);
            }
        }
    }

    /// Returns a segment in which the client only acknowledges the answers that it has.
    pub fn ack(&self) -> Segment {
        self.client
            .later(COOKIE, self.sent, self.answers * self.answer.len() as u32)
    }

    /// Returns the client's next request.
    pub fn request(&self) -> Segment {
        self.ack().flags("PA").payload(GET)
    }

    /// Has the server answer another request, of this many bytes, that it has got already. The client acknowledges the
    /// answer.
    pub fn answer_another(&mut self, bytes: usize) {
        self.sent += bytes;
        self.write();
        self.answers += 1;
        self.forwards(&self.ack(), FORWARDED);
    }

    /// Returns the next message on the wire, and checks that it goes from this node to `to`, which has this MAC
    /// address.
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

    /// Returns the next message, and checks that it gives data server 1 the connection as this attempt.
    #[track_caller]
    pub fn adopted_by_next(&self, attempt: u8) -> Sent {
        let adopts = self.message_to(ds(1), ds_mac(1));
        assert!(
            matches!(adopts.message, Message::Adopt { tcb, .. } if tcb.attempt == attempt),
            "{adopts:?}"
        );
        adopts
    }

    /// Checks that nothing else was sent until now: it sends a stranger's packet, and the NONE for that is the next
    /// message on the wire.
    #[track_caller]
    pub fn nothing_sent(&self) {
        let stranger = Client::fresh().later(COOKIE, 1, 1);
        self.forwards(&stranger, &[("ds_none", 1)]);
        let message = self.message_to(CS, CS_MAC);
        assert_eq!(message.packet, stranger.packet());
    }
}

/// A segment that the host's kernel sends. Its checksum is not complete: the interface would complete it.
pub struct Response(Packet);

impl Response {
    pub fn segment(&self) -> TcpSlice<'_> {
        TcpSlice::from_slice(&self.0.body).unwrap()
    }

    pub fn payload(&self) -> &[u8] {
        self.segment().payload()
    }
}

impl Node {
    /// Sends the packet in FORWARD, as the connection server does.
    pub fn forward(&self, packet: &Segment) {
        let client = packet.client();
        send(self, &lccp::forward(&client), packet);
    }

    /// Forwards the packet, and checks that exactly these counters move.
    #[track_caller]
    pub fn forwards(&self, packet: &Segment, counted: Counted<'_>) {
        self.forward(packet);
        self.expect(counted);
    }

    /// Sends the packet in ADOPT, and checks that exactly these counters move.
    #[track_caller]
    pub fn adopts(&self, packet: &Segment, counted: Counted<'_>) {
        send_adopt(self, packet);
        self.expect(counted);
    }

    /// Checks that exactly these counters have moved since the last look. It waits up to five seconds, because packets
    /// may still be on their way.
    #[track_caller]
    pub fn expect(&self, counted: Counted<'_>) {
        has_counted(self, counted).unwrap_or_else(|error| panic!("{error}"));
    }
}

pub fn send_adopt(node: &Node, packet: &Segment) {
    let client = packet.client();
    send(node, &adopt(&client), packet);
}

/// Forwards a packet with a wrong TCP checksum, as if it had been damaged on its way.
pub fn forward_broken(node: &Node, packet: &Segment) {
    const CHECKSUM_AT: usize = 36;
    let client = packet.client();
    let mut bytes = packet.packet();
    bytes[CHECKSUM_AT] ^= 1;
    send_bytes(node, &lccp::forward(&client), &bytes);
}

pub fn send(node: &Node, message: &Message, packet: &Segment) {
    send_bytes(node, message, &packet.packet());
}

/// Sends an ADOPT in the name of data server 1.
pub fn send_adopt_from_data_server(node: &Node, client: &Client, packet: &Segment) {
    send_from(ds(1), node, &adopt(client), packet);
}

/// Sends what the node with this address says. The address must be one of the host's.
pub fn send_from(from: Ipv4Addr, node: &Node, message: &Message, packet: &Segment) {
    send_bytes_from(from, node, message, &packet.packet());
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

/// Index of the loopback interface, by which the daemon of this node sends packets in.
pub const LOOPBACK: u32 = 1;

/// Returns the frame as which the daemon of this node sends the packet in.
pub fn frame_here(packet: &Segment) -> Vec<u8> {
    const ETHERNET: [u8; 14] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    [&ETHERNET[..], &packet.packet()].concat()
}

/// Does what [`Node::expect`] does, but returns an error that says which counters have moved.
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

/// Waits until this counter has moved since the last look, whatever other counters have moved.
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
