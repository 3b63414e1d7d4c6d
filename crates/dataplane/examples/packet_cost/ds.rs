//! Measures the data server's packets. Packets that the program leaves as they are can repeat in a test run. ADOPT
//! and FORWARD come in through a loopback to which the program is attached, and the kernel's own statistics say how
//! long the program took. An empty program beside it shows how long the measurement itself takes.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::{AsFd as _, OwnedFd},
    time::Duration,
};

use anyhow::{Result, ensure};
use baton_abi::{
    DataServer as Peer, RouteKey, SERVICE_OWNER, SERVICE_PATHS, SERVICE_RESUME, Service, ServiceKey,
};
use baton_dataplane::{
    Heads,
    sys::{self, Hook},
};
use baton_wire::{Message, encode};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::{
    cluster::{ARRIVES_AT, CS, CS_MAC, WEB, ds, ds_mac, first_pool_of_one, key, peer},
    host::accept,
    lccp::{TO_DS, adopt, forward},
    node::Node,
    program,
    report::Row,
    segment::{Client, GET, Segment},
    sniff::Wire,
    wrapper::Wrapper,
};

/// The number of connections of a round: fewer than a listener's backlog holds.
const ADOPTS: u32 = 2000;
/// The number of connections that have many requests each. They are so few that what is looked up for them is in the
/// processor's cache.
const FEW: usize = 16;
const REQUESTS_OF_FEW: usize = 60;
/// The connection server's cookie.
const COOKIE: u32 = 7;
const REPEATS: u32 = 100_000;
/// The number of connections on which the server writes between two looks at the ring: fewer than the ring has room
/// for, and done before the kernel sends any of it again.
const LOOKS: usize = 20;
/// The head of a response as nginx sends it.
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 23:08:36 GMT\r\n\
    Content-Type: application/octet-stream\r\nContent-Length: 4200\r\n\
    Last-Modified: Sat, 21 Nov 2026 13:42:41 GMT\r\nConnection: keep-alive\r\n\
    ETag: \"6b019fd1-1000\"\r\nAccept-Ranges: bytes\r\n\r\n";
/// The number of pieces in which the body of a response is sent.
const PIECES: u32 = 3;
const PIECE: [u8; 1400] = [7; 1400];
/// The further requests of a connection: `HERE` is answered here, and `ANOTHERS` is another data server's.
const HERE: &[u8] =
    b"GET /ds1/4k HTTP/1.1\r\nHost: cluster\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";
const ANOTHERS: &[u8] =
    b"GET /ds2/4k HTTP/1.1\r\nHost: cluster\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";

pub struct DataServer<'a> {
    node: Node,
    heads: Heads,
    wrapper: &'a Wrapper,
    listener: TcpListener,
    /// The client of a connection that lives through all rounds.
    client: Client,
    _connection: TcpStream,
    sender: Socket,
    _beside: [OwnedFd; 2],
    rows: Vec<Row>,
}

impl<'a> DataServer<'a> {
    /// Makes a data server in the caller's namespace.
    pub fn new(wrapper: &'a Wrapper) -> Result<Self> {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        listener.bind(&SocketAddr::V4(WEB).into())?;
        listener.listen(4096)?;
        let listener: TcpListener = listener.into();
        let attach =
            |program: &OwnedFd| sys::link_create(program.as_fd(), ARRIVES_AT, Hook::TcxIngress);
        let beside = [attach(&wrapper.tcx_nothing)?, attach(&wrapper.tcx_copies)?];
        let sender = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(253)))?;
        sender.bind(&SocketAddr::from((CS, 0)).into())?;
        sender.connect(&SocketAddr::from((ds(0), 0)).into())?;
        let node = Node::attached_ds(ARRIVES_AT);
        serve(&node, SERVICE_RESUME)?;
        let routes = ["/ds1/", "/ds2/"].into_iter().zip(first_pool_of_one()..);
        let routes = routes.map(|(path, pool)| {
            let key = RouteKey::of(0, 0, path.as_bytes());
            (key.expect("a path of a route"), pool.into())
        });
        node.routing().set_routes(&routes.collect::<Vec<_>>())?;
        for (address, mac) in [(CS, CS_MAC), (ds(1), ds_mac(1))] {
            let way = Peer {
                ifindex: Wire::interface(),
                ..peer(mac)
            };
            node.data_server().set_peer(address, &way)?;
        }
        let client = Client::of(WEB);
        sender.send(&message(&node, &adopt(&client), &client.get(COOKIE)))?;
        let (connection, _) = accept(&listener);
        Ok(Self {
            heads: node.data_server().heads()?,
            node,
            wrapper,
            listener,
            client,
            _connection: connection,
            sender,
            _beside: beside,
            rows: Vec::new(),
        })
    }

    pub fn program(&self) -> &OwnedFd {
        program_of(&self.node)
    }

    /// The data server's program at tc egress.
    pub fn head(&self) -> &OwnedFd {
        head_of(&self.node)
    }

    /// Measures one more value for every row.
    pub fn round(&mut self) -> Result<()> {
        let old = self.client.later(COOKIE, GET.len(), 0);
        let other = old.clone().to("10.77.0.100:8080".parse()?);
        let measured = self.repeat(&other)?;
        self.add("not for a service", None, measured);
        let measured = self.repeat(&old)?;
        self.add("plain packet of a connection", None, measured);

        let forward = forward(&self.client);
        let packets = (0..ADOPTS).map(|_| (forward.clone(), old.clone()));
        let measured = self.send_all("ds_forwarded", packets)?;
        self.add("FORWARD of a connection (live)", None, measured);
        let (_, empty) = measured;

        let clients: Vec<_> = (0..ADOPTS).map(|_| Client::of(WEB)).collect();
        let fresh = (clients.iter()).map(|client| (adopt(client), client.get(COOKIE)));
        let measured = self.send_all("ds_adopted", fresh)?;
        self.add("ADOPT -> a new socket (live)", Some(400.0), measured);
        let mut connections = self.accept_all()?;
        // After this time the kernel has acknowledged the requests, and does not send anything again so soon.
        std::thread::sleep(Duration::from_millis(300));
        let (mut heads, mut bodies) = (Vec::new(), Vec::new());
        for some in connections.chunks_mut(LOOKS) {
            heads.extend(self.leave(some, HEAD, some.len())?);
            for _ in 0..PIECES {
                bodies.extend(self.leave(some, &PIECE, 0)?);
            }
        }
        let (head, body) = ((mean(&heads), empty), (mean(&bodies), empty));

        let answered = HEAD.len() as u32 + PIECES * PIECE.len() as u32;
        let after = |client: &Client, sent: usize, request: &[u8]| {
            let packet = client.later(COOKIE, sent, answered);
            (crate::lccp::forward(client), packet.payload(request))
        };
        let next = |client: &Client, request: &[u8]| after(client, GET.len(), request);
        // The first packet of a connection moves its door to its socket. This is no part of the cost of later
        // packets.
        self.send_all(
            "ds_forwarded",
            clients.iter().map(|client| next(client, &[])),
        )?;
        let (here, other) = clients.split_at(clients.len() / 2);
        let (plain, resumable) = here.split_at(here.len() / 2);
        serve(&self.node, 0)?;
        let requests = plain.iter().map(|client| next(client, HERE));
        let measured = self.send_all("ds_door_request", requests)?;
        self.add(
            "door: next GET, answered here (live)",
            Some(450.0),
            measured,
        );
        let requests = (1..=REQUESTS_OF_FEW).flat_map(|number| {
            let sent = GET.len() + number * HERE.len();
            (plain[..FEW].iter()).map(move |client| after(client, sent, HERE))
        });
        let measured = self.send_all("ds_door_request", requests)?;
        self.add("door: the same, few connections", Some(450.0), measured);
        serve(&self.node, SERVICE_RESUME)?;
        let requests = resumable.iter().map(|client| next(client, HERE));
        let measured = self.send_all("ds_door_request", requests)?;
        self.add("door: the same, may be resumed", None, measured);
        let requests = other.iter().map(|client| next(client, ANOTHERS));
        let measured = self.send_all("ds_door_handed_on", requests)?;
        self.add("door: next GET, handed on (live)", Some(900.0), measured);
        let copies = (self.copy(&plain[0])?, empty);
        self.add("two copies of a packet, nothing else", None, copies);
        self.add("leaving, in the middle of a response", None, body);
        self.add("leaving, a response begins (shown)", None, head);
        Ok(())
    }

    /// Returns the mean nanoseconds of a program that sends two copies of a request on, and does nothing else.
    fn copy(&self, client: &Client) -> Result<f64> {
        let packet = client.later(COOKIE, GET.len(), 0).payload(ANOTHERS);
        let before = program::runs(&self.wrapper.tcx_copies)?;
        self.wrapper.copy_to(Wire::interface())?;
        self.send_all(
            "ds_forwarded",
            (0..ADOPTS).map(|_| (crate::lccp::forward(client), packet.clone())),
        )?;
        self.wrapper.copy_to(0)?;
        Ok(program::runs(&self.wrapper.tcx_copies)?.mean_since(before))
    }

    /// Adds a measurement to the row with this name: the nanoseconds with the program, and without it.
    fn add(&mut self, name: &'static str, goal: Option<f64>, (whole, floor): (f64, f64)) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.name == name) {
            return row.add(whole, floor);
        }
        let mut row = Row::new(name, goal);
        row.add(whole, floor);
        self.rows.push(row);
    }

    pub fn rows(self) -> Vec<Row> {
        self.rows
    }

    /// Repeats the same packet. Returns the mean nanoseconds with the program and without it.
    fn repeat(&self, packet: &Segment) -> Result<(f64, f64)> {
        let run = |program: &OwnedFd| -> Result<f64> {
            let outcome = sys::run_on_frame(program.as_fd(), &packet.frame(), None, REPEATS)?;
            Ok(outcome.duration.as_nanos() as f64)
        };
        Ok((
            run(program_of(&self.node))?,
            run(&self.wrapper.tcx_nothing)?,
        ))
    }

    /// Lets the server write this payload on each connection. Returns the mean nanoseconds of the program at tc
    /// egress, which must show so many heads, or None if the kernel had to wait and sent something again.
    fn leave(
        &mut self,
        connections: &[TcpStream],
        payload: &[u8],
        shown: usize,
    ) -> Result<Option<f64>> {
        let head = head_of(&self.node);
        let before = program::runs(head)?;
        self.node.look();
        for mut connection in connections {
            connection.write_all(payload)?;
        }
        let after = program::runs(head)?;
        self.heads.take()?.for_each(drop);
        let moved = self.node.moved();
        let counted = moved.get("ds_head").copied().unwrap_or(0);
        ensure!(counted == shown as u64, "counted {moved:?}");
        let is_all = after.count_since(before) == connections.len() as u64;
        Ok(is_all.then(|| after.mean_since(before)))
    }

    /// Sends messages through the loopback. Returns the mean nanoseconds of the program, and of the empty one.
    fn send_all(
        &self,
        counter: &str,
        messages: impl Iterator<Item = (Message, Segment)>,
    ) -> Result<(f64, f64)> {
        let frames: Vec<Vec<u8>> = messages
            .map(|(of, packet)| message(&self.node, &of, &packet))
            .collect();
        let programs = [program_of(&self.node), &self.wrapper.tcx_nothing];
        let before = [program::runs(programs[0])?, program::runs(programs[1])?];
        self.node.look();
        for frame in &frames {
            self.sender.send(frame)?;
        }
        let after = [program::runs(programs[0])?, program::runs(programs[1])?];
        let moved = self.node.moved();
        let sent = frames.len() as u64;
        ensure!(moved.get(counter) == Some(&sent), "counted {moved:?}");
        for (after, before) in after.iter().zip(before) {
            ensure!(
                after.count_since(before) == sent,
                "other packets came in between"
            );
        }
        Ok((
            after[0].mean_since(before[0]),
            after[1].mean_since(before[1]),
        ))
    }

    /// Accepts what was adopted, and reads its requests. A connection ends by a RST when it is dropped, so that
    /// nothing of it stays.
    fn accept_all(&self) -> Result<Vec<TcpStream>> {
        (0..ADOPTS)
            .map(|_| {
                let (mut stream, _) = self.listener.accept()?;
                stream.read_exact(&mut [0; GET.len()])?;
                stream.set_nodelay(true)?;
                SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                Ok(stream)
            })
            .collect()
    }
}

/// Sets the service that has the routes, with these further flags.
fn serve(node: &Node, flags: u32) -> Result<()> {
    let owns = Service {
        flags: (SERVICE_OWNER | SERVICE_PATHS | flags) as u16,
        ..Service::default()
    };
    Ok(node.plane().set_service(&ServiceKey::of(WEB), &owns)?)
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

fn message(node: &Node, message: &Message, packet: &Segment) -> Vec<u8> {
    encode(message, &packet.packet(), node.now(), &key().lccp(), TO_DS)
}

fn head_of(node: &Node) -> &OwnedFd {
    &node.data_server().egress
}

fn program_of(node: &Node) -> &OwnedFd {
    &node.data_server().ingress
}
