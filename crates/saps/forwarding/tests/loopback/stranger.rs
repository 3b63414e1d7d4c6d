//! A node made by hand. It knows the cluster key, and then sends whatever a test wants.

use std::net::SocketAddr;
use std::time::Duration;

use baton_saps_protocol::wire::{Decoder, Families, Frame, Hello, ListenerTag, Side, Tag, Way};
use baton_wire::{ClusterKey, Endpoint};
use bytes::BytesMut;
use ring::hmac;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// The epoch that the stranger gives in its Hello.
const EPOCH: u32 = 77;

pub struct Stranger {
    stream: TcpStream,
    decoder: Decoder,
    /// The epoch that frames to the I/O server carry on this link; 0 before its Hello.
    pub epoch: u32,
    /// All bytes that the stranger has sent since the proof.
    pub said: BytesMut,
}

/// A client's connection that the stranger was offered.
pub struct Offer {
    pub tag: Tag,
    /// L_r of the I/O server: how many bytes the stranger may send.
    pub limit: u64,
    /// The cluster address and port that the client connected to.
    pub local: Endpoint,
}

impl Stranger {
    /// Proves that the stranger knows the key, and sends nothing else yet.
    pub async fn prove(at: SocketAddr, key: &ClusterKey) -> Self {
        // The buffer is small, so that the I/O server soon notices if the stranger does not read.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(at).await.unwrap();
        let root = hmac::Key::new(hmac::HMAC_SHA256, key.forwarding().bytes());
        let secret = hmac::sign(&root, b"link over TCP");
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref());
        let node = [9; 32];
        let greeting = hmac::sign(&secret, &[b"greeting", &node[..]].concat());
        let first = [b"baton/1\n", &node[..], greeting.as_ref()].concat();
        stream.write_all(&first).await.unwrap();
        let mut answer = [0; 64];
        stream.read_exact(&mut answer).await.unwrap();
        let nonces = [&node[..], &answer[..32]].concat();
        let proof = hmac::sign(&secret, &[b"application node", &nonces[..]].concat());
        stream.write_all(proof.as_ref()).await.unwrap();
        Self {
            stream,
            decoder: Decoder::default(),
            epoch: 0,
            said: BytesMut::new(),
        }
    }

    /// Proves the key as [`Self::prove`] does, and exchanges Hellos.
    pub async fn join(at: SocketAddr, key: &ClusterKey, name: &str) -> Self {
        let mut stranger = Self::prove(at, key).await;
        let hello = Hello::new(Side::Application, EPOCH, name).unwrap();
        stranger.say(Frame::Hello(hello)).await;
        let Some(Frame::Hello(hello)) = stranger.hear().await else {
            panic!("no Hello");
        };
        stranger.epoch = hello.epoch;
        stranger
    }

    pub async fn say(&mut self, frame: Frame) {
        let epoch = match frame {
            Frame::Hello(_) => 0,
            _ => self.epoch,
        };
        self.say_bytes(&frame.encode(epoch)).await;
    }

    pub async fn say_bytes(&mut self, bytes: &[u8]) {
        self.said.extend_from_slice(bytes);
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends a frame again and again, and reads nothing, until the I/O server ends the link.
    pub async fn flood(&mut self, frame: &Frame) {
        let many = frame.encode(self.epoch).repeat(4096);
        while self.stream.write_all(&many).await.is_ok() {}
    }

    /// The next frame, without Taken, which depends on the host. Returns `None` if the I/O server has ended the link.
    pub async fn hear(&mut self) -> Option<Frame> {
        loop {
            match self.decoder.next().unwrap() {
                Some((_, Frame::Taken { .. })) => {}
                Some((_, frame)) => return Some(frame),
                None => {
                    let read = self.stream.read_buf(self.decoder.buffer()).await;
                    if read.unwrap_or(0) == 0 {
                        return None;
                    }
                }
            }
        }
    }

    /// Whether the link is still up: the I/O server must answer a question.
    pub async fn is_heard(&mut self) -> bool {
        let tag = Tag(2_000_000);
        let asked = Frame::CloseConnection { tag };
        let asked = asked.encode(self.epoch);
        if self.stream.write_all(&asked).await.is_err() {
            return false;
        }
        self.until(|frame| matches!(frame, Frame::ConnectionClosed { tag: of } if *of == tag))
            .await
            .is_some()
    }

    /// Skips frames until one for which `is_it` holds, and returns that one.
    pub async fn until(&mut self, is_it: impl Fn(&Frame) -> bool) -> Option<Frame> {
        loop {
            let frame = self.hear().await?;
            if is_it(&frame) {
                return Some(frame);
            }
        }
    }

    /// Listens on a port that the I/O server chooses.
    pub async fn listen(&mut self) -> u16 {
        let wish = Frame::Listen {
            listener: ListenerTag(1),
            port: 0,
            families: Families::V4,
        };
        self.say(wish).await;
        match self
            .until(|frame| matches!(frame, Frame::Listening { .. }))
            .await
        {
            Some(Frame::Listening { port, .. }) => port,
            _ => panic!("nobody listens"),
        }
    }

    /// Connects a client to the port, and returns it with the connection that the stranger is offered for it.
    pub async fn offer(&mut self, port: u16) -> (TcpStream, Offer) {
        let client = super::cluster::client(port).await;
        let made = self.until(|frame| matches!(frame, Frame::MakeConnection { .. }));
        match made.await {
            Some(Frame::MakeConnection {
                tag,
                limit,
                way: Way::In { local, .. },
            }) => (client, Offer { tag, limit, local }),
            _ => panic!("no connection is offered"),
        }
    }

    /// Gets an offer as [`Self::offer`] does, and accepts the connection.
    pub async fn accept(&mut self, port: u16) -> (TcpStream, Offer) {
        let (client, offer) = self.offer(port).await;
        let accepted = Frame::ConnectionAccepted {
            tag: offer.tag,
            limit: 100_000,
            local: offer.local,
        };
        self.say(accepted).await;
        (client, offer)
    }

    /// Ends the sending direction. The stranger can still receive.
    pub async fn end(&mut self) {
        self.stream.shutdown().await.unwrap();
    }
}

/// How many sockets of this machine have this port at 127.0.0.1 and another port at their other end: those that an I/O
/// server has open there.
pub fn open_at(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let local = format!("0100007F:{port:04X}");
    // ESTABLISHED and CLOSE_WAIT are the states of sockets that a process must still close.
    let is_held = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next() == Some(&local) && matches!(fields.nth(1), Some("01" | "08"))
    };
    table.lines().filter(is_held).count()
}

/// Waits for something that must happen.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, what).await.unwrap()
}
