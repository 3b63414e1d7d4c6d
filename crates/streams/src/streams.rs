//! The streams of one node.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use baton_wire::KeyRing;
use quinn::{Endpoint, TokioRuntime, VarInt};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use crate::channel::Opened;
use crate::frame::Topic;
use crate::listener::{Listener, StreamMessage};
use crate::question::{Ask, Question};
use crate::shared;
use crate::teller::{Teller, Topics};

/// How many texts may wait for the daemon to take them; then the senders wait.
const HEARD: usize = 16;
/// How many questions or channels of other nodes may wait to be taken.
const QUESTIONS: usize = 256;

/// Why a node's streams could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The UDP port is not available.
    #[error(
        "cannot take streams of other nodes at {at} (UDP); if another program has that port, set another stream_port under [cluster], the same on every node"
    )]
    Listen {
        /// The address and port.
        at: SocketAddrV4,
        /// The reason.
        source: io::Error,
    },
    /// The key gives no key pair.
    #[error("the node's key makes no key pair")]
    Key(#[from] rustls::Error),
}

/// What comes from other nodes.
#[derive(Debug)]
pub struct Incoming {
    /// The texts of topics.
    pub heard: mpsc::Receiver<StreamMessage>,
    /// The questions.
    pub questions: mpsc::Receiver<Question>,
    /// The channels.
    pub channels: mpsc::Receiver<Opened>,
}

/// The task that reaches one other node.
#[derive(Debug)]
struct Told {
    topics: watch::Sender<Topics>,
    ask: Ask,
}

/// All streams from and to this node. They end when this value is dropped.
#[derive(Debug)]
pub struct Streams {
    endpoint: Endpoint,
    port: u16,
    keys: watch::Sender<KeyRing>,
    told: HashMap<Ipv4Addr, Told>,
    /// Where all tasks run.
    runtime: Handle,
}

impl Streams {
    /// Accepts streams at the node's own address from now on. Must be called within a tokio runtime, which has all tasks.
    ///
    /// # Errors
    /// The port is not available.
    pub fn open(own: Ipv4Addr, port: u16, keys: KeyRing) -> Result<(Self, Incoming), Error> {
        // Every stream is accepted under the keys of its two nodes. These default keys match no node.
        let nobody = shared::server(&keys.with(Ipv4Addr::UNSPECIFIED))?;
        let at = SocketAddrV4::new(own, port);
        let endpoint = UdpSocket::bind(at).and_then(|socket| {
            let config = shared::endpoint(&keys.with(Ipv4Addr::UNSPECIFIED).current);
            Endpoint::new(config, Some(nobody), socket, Arc::new(TokioRuntime))
        });
        let endpoint = endpoint.map_err(|source| Error::Listen { at, source })?;
        let (sender, heard) = mpsc::channel(HEARD);
        let (asking, questions) = mpsc::channel(QUESTIONS);
        let (opening, channels) = mpsc::channel(QUESTIONS);
        let keys = watch::Sender::new(keys);
        let listener = Listener {
            endpoint: endpoint.clone(),
            keys: keys.subscribe(),
            heard: sender,
            questions: asking,
            channels: opening,
        };
        tokio::spawn(listener.run());
        let streams = Self {
            endpoint,
            port,
            keys,
            told: HashMap::new(),
            runtime: Handle::current(),
        };
        let incoming = Incoming {
            heard,
            questions,
            channels,
        };
        Ok((streams, incoming))
    }

    /// Replaces the keys. Streams under other keys end, and begin again under these.
    pub fn rekey(&self, keys: KeyRing) {
        self.keys.send_if_modified(|now| {
            let changed = *now != keys;
            *now = keys;
            changed
        });
    }

    /// Sends this text to the node now or as soon as it can be reached, and again whenever the node restarts, until the
    /// topic has another text. The text has at most [`crate::LONGEST`] bytes.
    pub fn tell(&mut self, node: Ipv4Addr, topic: Topic, text: &[u8]) {
        let topics = &self.reached(node).topics;
        topics.send_if_modified(|topics| {
            let is_new = topics.get(&topic).is_none_or(|now| ***now != *text);
            if is_new {
                topics.insert(topic, Arc::new(text.into()));
            }
            is_new
        });
    }

    /// Forgets the text of a topic for all nodes but these, so that it is not sent there again.
    pub fn tell_no_others(&mut self, nodes: &[Ipv4Addr], topic: Topic) {
        let others = self.told.iter().filter(|(node, _)| !nodes.contains(node));
        for (_, told) in others {
            told.topics
                .send_if_modified(|topics| topics.remove(&topic).is_some());
        }
    }

    /// The handle to ask this node, and to open channels to it. Both fail once the node is none of those that are reached
    /// ([`Streams::tell_only`]).
    pub fn asking(&mut self, node: Ipv4Addr) -> Ask {
        self.reached(node).ask.clone()
    }

    /// The task that reaches this node.
    fn reached(&mut self, node: Ipv4Addr) -> &Told {
        let (endpoint, keys, port) = (&self.endpoint, &self.keys, self.port);
        self.told.entry(node).or_insert_with(|| {
            let topics = watch::Sender::default();
            let (sender, reached) = watch::channel(None);
            let teller = Teller {
                endpoint: endpoint.clone(),
                to: SocketAddrV4::new(node, port),
                keys: keys.subscribe(),
                topics: topics.subscribe(),
                reached: sender,
            };
            self.runtime.spawn(teller.run());
            let ask = Ask(reached);
            Told { topics, ask }
        })
    }

    /// Stops sending to all nodes except these.
    pub fn tell_only(&mut self, nodes: &[Ipv4Addr]) {
        self.told.retain(|node, _| nodes.contains(node));
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.endpoint.close(VarInt::from_u32(0), b"");
    }
}
