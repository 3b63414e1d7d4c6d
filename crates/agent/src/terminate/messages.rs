//! What the daemon and the process that speaks TLS say to each other, in frames:
//!
//! ```text
//!  length of the rest: 4 bytes, big-endian | kind: 1 | number of the question: 8 | content
//! ```
//!
//! Reports, counters and rules are JSON. What holds requests or secrets is in bytes, and is overwritten when it is dropped.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use baton_tls::{PemFile, TicketKeyRing};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use zeroize::Zeroizing;

use super::judge::{PoolChoices, RequestRules};
use super::order;
use super::settings::{Report, Settings};
use crate::client::Ends;

/// Bytes that may hold secrets.
pub type Secret = Zeroizing<Vec<u8>>;

/// What the daemon says.
#[derive(Debug)]
pub enum ToAgent {
    /// Serve exactly this from now on; here are the files of certificates. Connections of other services go on to their
    /// ends.
    Serve(Settings, Vec<PemFile>),
    /// End at once, with all connections.
    End,
    /// Connections without a request are to leave this data server, which drains.
    Leave,
    /// Another data server's agent has a connection move here. The answer is [`FromAgent::Taken`], and if that says yes,
    /// [`FromAgent::Arrived`] follows.
    Take(u64, Moving),
    /// The answer to [`FromAgent::Move`], if the connection has not moved: it is to stay. If it has moved, its socket has
    /// ended.
    Stays(u64),
    /// Another data server's agent has requests for the server here, of the connection with these ends. The answer is a
    /// connection of its own, which begins with [`FromAgent::Relayed`].
    Relay(u64, Ends),
    /// The keys of session tickets that the daemon knows. It says so first, and whenever they change.
    TicketKeys(TicketKeyRing),
    /// Requests are judged by these rules. The daemon says so as soon as it knows, and whenever they change.
    Rules(Arc<RequestRules>),
    /// Requests of this pool choose among these data servers. The daemon says so of each pool, and whenever they change.
    Choices(u16, Arc<PoolChoices>),
}

/// What the process says.
#[derive(Debug)]
pub enum FromAgent {
    /// What the process says first: of which build it is.
    Hello(String),
    /// The answer to an order.
    Report(Report),
    /// The counters of the process, with their metrics' labels.
    Counted(Vec<(String, u64)>),
    /// The connection is to move to this data server.
    Move(u64, Ipv4Addr, Moving),
    /// The connection has left its socket, on the way to the other data server.
    Left(u64),
    /// Whether the session of the connection can go on here.
    Taken(u64, bool),
    /// The connection has come here; or, if false, it is no longer expected.
    Arrived(u64, bool),
    /// The first and only message on a connection, which from then on leads to the agent of this data server: requests of
    /// the client's connection with these ends.
    Relay(Ipv4Addr, Ends),
    /// The first and only message on a connection that [`ToAgent::Relay`] has asked for.
    Relayed(u64),
    /// The keys of session tickets that the process knows. It says so after [`FromAgent::Hello`], and whenever they
    /// change.
    TicketKeys(TicketKeyRing),
}

/// A connection that moves, with all that its next agent needs.
pub struct Moving {
    /// The client, and the cluster address and port.
    pub ends: Ends,
    /// The session and the data that have come of it (`state.rs`).
    pub state: Secret,
}

/// The state is secret.
impl fmt::Debug for Moving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moving")
            .field("ends", &self.ends)
            .field("bytes", &self.state.len())
            .finish_non_exhaustive()
    }
}

impl Moving {
    fn write(&self, to: &mut Vec<u8>) {
        write_ends(to, &self.ends);
        to.extend_from_slice(&self.state);
    }

    /// The connection as bytes, for the daemon of another node.
    pub fn to_bytes(&self) -> Secret {
        let mut bytes = Zeroizing::new(Vec::with_capacity(ENDS + self.state.len()));
        self.write(&mut bytes);
        bytes
    }

    /// The connection that [`Moving::to_bytes`] made these bytes of; `None` if they are none.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        Some(Self {
            ends: read_ends(&mut bytes)?,
            state: Zeroizing::new(bytes.to_vec()),
        })
    }
}

/// Bytes of two addresses with their ports.
const ENDS: usize = 12;

/// Writes the addresses and ports.
pub fn write_ends(to: &mut Vec<u8>, ends: &Ends) {
    for end in [ends.client, ends.cluster] {
        to.extend(end.ip().octets());
        to.extend(end.port().to_be_bytes());
    }
}

/// Takes off what [`write_ends`] has written; `None` if it is too short.
pub fn read_ends(bytes: &mut &[u8]) -> Option<Ends> {
    let mut end = || {
        let (ip, rest) = bytes.split_first_chunk::<4>()?;
        let (port, rest) = rest.split_first_chunk::<2>()?;
        *bytes = rest;
        Some(SocketAddrV4::new(
            Ipv4Addr::from(*ip),
            u16::from_be_bytes(*port),
        ))
    };
    Some(Ends {
        client: end()?,
        cluster: end()?,
    })
}

/// A message that goes one way.
pub trait Message: Sized {
    /// The longest frame, bytes.
    const LONGEST: usize;
    /// Its kind, its number, and its content, which is appended.
    fn encode(&self, content: &mut Vec<u8>) -> (u8, u64);
    /// The message of this kind, number and content; `None` if there is no such message.
    fn decode(kind: u8, number: u64, content: &[u8]) -> Option<Self>;
}

fn json(value: &impl serde::Serialize, content: &mut Vec<u8>) {
    // Nothing in these values fails to be JSON.
    content.extend(serde_json::to_vec(value).unwrap_or_default());
}

impl Message for ToAgent {
    /// Hundreds of services with their certificates.
    const LONGEST: usize = 16 << 20;

    fn encode(&self, content: &mut Vec<u8>) -> (u8, u64) {
        match self {
            Self::Serve(settings, files) => {
                order::write(settings, files, content);
                (0, 0)
            }
            Self::End => (7, 0),
            Self::Leave => (8, 0),
            Self::Take(number, moving) => {
                moving.write(content);
                (2, *number)
            }
            Self::Stays(number) => (3, *number),
            Self::Relay(number, ends) => {
                write_ends(content, ends);
                (5, *number)
            }
            Self::TicketKeys(ring) => {
                ring.write_to(content);
                (6, 0)
            }
            Self::Rules(rules) => {
                json(&**rules, content);
                (9, 0)
            }
            Self::Choices(pool, choices) => {
                content.extend(pool.to_be_bytes());
                content.extend(choices.policy.to_be_bytes());
                content.extend(choices.slots.iter().flat_map(|slot| slot.to_be_bytes()));
                (10, 0)
            }
        }
    }

    fn decode(kind: u8, number: u64, content: &[u8]) -> Option<Self> {
        Some(match (kind, content) {
            (0, _) => {
                let (settings, files) = order::read(content)?;
                Self::Serve(settings, files)
            }
            (7, []) => Self::End,
            (8, []) => Self::Leave,
            (2, _) => Self::Take(number, Moving::from_bytes(content)?),
            (3, []) => Self::Stays(number),
            (5, mut ends) => Self::Relay(number, read_ends(&mut ends)?),
            (6, ring) => Self::TicketKeys(TicketKeyRing::read(ring)?),
            (9, rules) => Self::Rules(Arc::new(serde_json::from_slice(rules).ok()?)),
            (10, [a, b, policy @ ..]) => {
                let (policy, slots) = policy.split_first_chunk()?;
                let (slots, []) = slots.as_chunks() else {
                    return None;
                };
                let choices = PoolChoices {
                    policy: u32::from_be_bytes(*policy),
                    slots: slots.iter().map(|slot| u16::from_be_bytes(*slot)).collect(),
                };
                Self::Choices(u16::from_be_bytes([*a, *b]), Arc::new(choices))
            }
            _ => return None,
        })
    }
}

impl Message for FromAgent {
    /// A session, and what has come of it.
    const LONGEST: usize = 1 << 20;

    fn encode(&self, content: &mut Vec<u8>) -> (u8, u64) {
        match self {
            Self::Report(report) => {
                json(report, content);
                (0, 0)
            }
            Self::Move(number, next, moving) => {
                content.extend(next.octets());
                moving.write(content);
                (2, *number)
            }
            Self::Taken(number, is_here) => {
                content.push((*is_here).into());
                (3, *number)
            }
            Self::Arrived(number, has_come) => {
                content.push((*has_come).into());
                (10, *number)
            }
            Self::Left(number) => (4, *number),
            Self::Counted(counts) => {
                json(counts, content);
                (6, 0)
            }
            Self::Hello(build) => {
                content.extend(build.bytes());
                (5, 0)
            }
            Self::Relay(next, ends) => {
                content.extend(next.octets());
                write_ends(content, ends);
                (7, 0)
            }
            Self::Relayed(number) => (8, *number),
            Self::TicketKeys(ring) => {
                ring.write_to(content);
                (9, 0)
            }
        }
    }

    fn decode(kind: u8, number: u64, content: &[u8]) -> Option<Self> {
        Some(match (kind, content) {
            (0, _) => Self::Report(serde_json::from_slice(content).ok()?),
            (2, [a, b, c, d, rest @ ..]) => {
                let next = Ipv4Addr::new(*a, *b, *c, *d);
                Self::Move(number, next, Moving::from_bytes(rest)?)
            }
            (3, [is_here @ (0 | 1)]) => Self::Taken(number, *is_here == 1),
            (10, [has_come @ (0 | 1)]) => Self::Arrived(number, *has_come == 1),
            (4, []) => Self::Left(number),
            (6, counts) => Self::Counted(serde_json::from_slice(counts).ok()?),
            (7, [a, b, c, d, ends @ ..]) => {
                let next = Ipv4Addr::new(*a, *b, *c, *d);
                Self::Relay(next, read_ends(&mut &*ends)?)
            }
            (8, []) => Self::Relayed(number),
            (5, build) => Self::Hello(String::from_utf8(build.to_vec()).ok()?),
            (9, ring) => Self::TicketKeys(TicketKeyRing::read(ring)?),
            _ => return None,
        })
    }
}

/// The frame of a message.
pub fn frame(message: &impl Message) -> Secret {
    let mut content = Zeroizing::new(Vec::new());
    let (kind, number) = message.encode(&mut content);
    let mut frame = Zeroizing::new(Vec::with_capacity(HEADER + content.len()));
    // No message is near 4 GiB.
    frame.extend(((content.len() + HEADER - 4) as u32).to_be_bytes());
    frame.push(kind);
    frame.extend(number.to_be_bytes());
    frame.extend_from_slice(&content);
    frame
}

const HEADER: usize = 4 + 1 + 8;

/// Sends a message.
///
/// # Errors
/// The other side has ended.
pub async fn send<M: Message>(to: &mut (impl AsyncWrite + Unpin), message: &M) -> io::Result<()> {
    let frame = frame(message);
    debug_assert!(frame.len() <= M::LONGEST, "nobody would take this message");
    to.write_all(&frame).await
}

/// Receives the next message. `None`: the other side has ended. Messages of a later build, which this one does not know,
/// are passed over.
///
/// # Errors
/// What the other side said has no frames.
pub async fn receive<M: Message>(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<M>> {
    loop {
        let length = match from.read_u32().await {
            Ok(length) => length as usize,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        };
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "no message");
        if !(HEADER - 4..=M::LONGEST).contains(&length) {
            return Err(invalid());
        }
        let mut frame = Zeroizing::new(vec![0; length]);
        from.read_exact(&mut frame).await?;
        let (kind, rest) = frame.split_first().ok_or_else(invalid)?;
        let (number, content) = rest.split_first_chunk().ok_or_else(invalid)?;
        match M::decode(*kind, u64::from_be_bytes(*number), content) {
            Some(message) => return Ok(Some(message)),
            None => tracing::debug!(kind, length, "passing over a message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Ends {
        Ends {
            client: "192.0.2.7:40000".parse().unwrap(),
            cluster: "192.0.2.100:443".parse().unwrap(),
        }
    }

    fn moving() -> Moving {
        Moving {
            ends: ends(),
            state: Zeroizing::new(vec![7; 1000]),
        }
    }

    fn choices() -> Arc<PoolChoices> {
        Arc::new(PoolChoices {
            policy: 2,
            slots: vec![1, 2, 300],
        })
    }

    fn ticket_keys() -> TicketKeyRing {
        let mut ring = TicketKeyRing::default();
        assert!(ring.renew(0) && ring.renew(1 << 15));
        ring
    }

    /// Receives these bytes, and describes the messages in them.
    async fn received<M: Message + std::fmt::Debug>(mut bytes: &[u8]) -> io::Result<Vec<String>> {
        let mut messages = Vec::new();
        while let Some(message) = receive::<M>(&mut bytes).await? {
            messages.push(format!("{message:?}"));
        }
        Ok(messages)
    }

    #[tokio::test]
    async fn what_is_sent_is_received() {
        let next = Ipv4Addr::new(192, 0, 2, 11);
        let mut bytes = Vec::new();
        let mut sent = Vec::new();
        for message in [
            FromAgent::Hello("build".into()),
            FromAgent::Report(Report::Refused { why: "a".into() }),
            FromAgent::Counted(vec![("a".into(), 1)]),
            FromAgent::Move(2, next, moving()),
            FromAgent::Left(u64::MAX),
            FromAgent::Taken(4, true),
            FromAgent::Arrived(5, false),
            FromAgent::Relay(next, ends()),
            FromAgent::Relayed(5),
            FromAgent::TicketKeys(ticket_keys()),
        ] {
            sent.push(format!("{message:?}"));
            send(&mut bytes, &message).await.unwrap();
        }
        assert_eq!(received::<FromAgent>(&bytes).await.unwrap(), sent);
        let (mut bytes, mut sent) = (Vec::new(), Vec::new());
        for message in [
            ToAgent::Serve(Settings::default(), Vec::new()),
            ToAgent::End,
            ToAgent::Leave,
            ToAgent::Rules(Arc::default()),
            ToAgent::Choices(300, choices()),
            ToAgent::Choices(
                1,
                Arc::new(PoolChoices {
                    policy: 0,
                    slots: Vec::new(),
                }),
            ),
            ToAgent::Take(4, moving()),
            ToAgent::Stays(6),
            ToAgent::Relay(7, ends()),
            ToAgent::TicketKeys(ticket_keys()),
            ToAgent::TicketKeys(TicketKeyRing::default()),
        ] {
            sent.push(format!("{message:?}"));
            send(&mut bytes, &message).await.unwrap();
        }
        assert_eq!(received::<ToAgent>(&bytes).await.unwrap(), sent);
    }

    #[tokio::test]
    async fn what_is_no_message_is_refused() {
        let whole = frame(&FromAgent::Taken(1, true));
        assert_eq!(received::<FromAgent>(b"").await.unwrap().len(), 0);
        for cut in 4..whole.len() {
            assert!(received::<FromAgent>(&whole[..cut]).await.is_err(), "{cut}");
        }
        for (place, value) in [(0, 1), (3, 0)] {
            let mut bytes = whole.to_vec();
            bytes[place] = value;
            assert!(received::<FromAgent>(&bytes).await.is_err(), "{place}");
        }
        // A kind, and a content, of which this build does not know.
        for (place, value) in [(4, 99), (13, 9)] {
            let mut bytes = whole.to_vec();
            bytes[place] = value;
            bytes.extend(&whole[..]);
            assert_eq!(received::<FromAgent>(&bytes).await.unwrap().len(), 1);
        }
    }

    #[test]
    fn a_connection_goes_from_daemon_to_daemon() {
        let bytes = moving().to_bytes();
        let come = Moving::from_bytes(&bytes).unwrap();
        assert_eq!((come.ends, &come.state), (ends(), &moving().state));
        for cut in 0..ENDS {
            assert!(Moving::from_bytes(&bytes[..cut]).is_none());
        }
    }
}
