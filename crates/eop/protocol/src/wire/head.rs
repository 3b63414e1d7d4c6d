//! The head that stands before a message, and its bytes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{HEADER, MAGIC, Token, items::Items, opcode};

/// The head that stands before a message, without the message's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// The message is a request or an answer.
    Normal,
    /// The other end of this connection is at another server from now on. If the message answers a request, it must be
    /// delivered first.
    Redirect(Redirect),
    /// The first message of a client that has something to say about itself, or does not know what the server speaks.
    Hello(Hello),
    /// The first message of a server to a client that said [`Head::Hello`]: the server speaks EOP.
    Welcome,
}

/// The target of a redirect, and what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The server to go to. Its port is not 0, and its address is not unspecified.
    pub target: SocketAddr,
    /// Whether the message that comes with this answers the oldest request. If not, the client must send all requests
    /// that have no answer to the target. Always true if the message has bytes.
    pub answers: bool,
    /// The token that the client must show at the target.
    pub token: Option<Token>,
    /// Of all bytes in the client's messages on this connection, this many are answered. The bytes behind them must be
    /// sent again, whatever the messages were. This is for relays of byte streams, whose answers are not messages. If
    /// it is `None`, messages count.
    pub taken: Option<u64>,
}

/// The first message of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The token that came with the redirect to this server.
    pub token: Option<Token>,
    /// The server that this one had redirected the client to, and where nobody answers.
    pub fell_back_from: Option<SocketAddr>,
}

impl Head {
    /// The bytes of this head before a message of `slen` bytes. [`Head::Hello`] and [`Head::Welcome`] have no message,
    /// so `slen` is ignored.
    ///
    /// ```
    /// use eop_protocol::wire::{Head, Redirect};
    ///
    /// assert_eq!(Head::Normal.bytes(5), [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    /// let redirect = Redirect { target: "10.0.0.7:80".parse()?, answers: false, token: None, taken: None };
    /// assert_eq!(Head::Redirect(redirect).bytes(0), [0, 2, 0, 80, 10, 0, 0, 7, 0, 0, 0, 0]);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn bytes(&self, slen: u32) -> Vec<u8> {
        match self {
            Self::Normal => Self::normal(slen).to_vec(),
            Self::Redirect(redirect) => redirect.bytes(slen),
            Self::Hello(hello) => extended(MAGIC, hello.items()),
            Self::Welcome => extended(
                header(opcode::WELCOME_1, magic_port(), magic_address(), 0),
                Items::default(),
            ),
        }
    }

    /// The bytes of [`Head::Normal`], made without an allocation.
    #[inline]
    pub const fn normal(slen: u32) -> [u8; HEADER] {
        let [o0, o1] = opcode::NORMAL.to_be_bytes();
        let [s0, s1, s2, s3] = slen.to_be_bytes();
        [o0, o1, 0, 0, 0, 0, 0, 0, s0, s1, s2, s3]
    }

    /// The length of the message, if `bytes` begin with a whole [`Head::Normal`], as almost all messages do. For
    /// everything else there is [`parse`](super::parse).
    #[inline]
    pub const fn normal_slen(bytes: &[u8]) -> Option<u32> {
        // Port and address have no meaning in a message that does not redirect.
        if let [o0, o1, _, _, _, _, _, _, s0, s1, s2, s3, ..] = *bytes
            && u16::from_be_bytes([o0, o1]) == opcode::NORMAL
        {
            return Some(u32::from_be_bytes([s0, s1, s2, s3]));
        }
        None
    }
}

impl Redirect {
    fn bytes(&self, slen: u32) -> Vec<u8> {
        let mut items = Items::default();
        let address = match self.target.ip().to_canonical() {
            IpAddr::V4(address) => address,
            IpAddr::V6(address) => {
                items.address6 = Some(address);
                Ipv4Addr::UNSPECIFIED
            }
        };
        items.token = self.token;
        items.taken = self.taken;
        items.answers = self.answers && slen == 0;
        if items == Items::default() {
            return header(opcode::REDIRECT, self.target.port(), address, slen).to_vec();
        }
        extended(
            header(opcode::REDIRECT_1, self.target.port(), address, slen),
            items,
        )
    }
}

impl Hello {
    fn items(&self) -> Items {
        Items {
            token: self.token,
            fell_back_from: self.fell_back_from,
            ..Items::default()
        }
    }
}

pub(super) const fn magic_port() -> u16 {
    u16::from_be_bytes([MAGIC[2], MAGIC[3]])
}

pub(super) const fn magic_address() -> Ipv4Addr {
    Ipv4Addr::new(MAGIC[4], MAGIC[5], MAGIC[6], MAGIC[7])
}

fn header(opcode: u16, port: u16, address: Ipv4Addr, slen: u32) -> [u8; HEADER] {
    let [o, p, a, s] =
        [u32::from(opcode), u32::from(port), address.to_bits(), slen].map(u32::to_be_bytes);
    [
        o[2], o[3], p[2], p[3], a[0], a[1], a[2], a[3], s[0], s[1], s[2], s[3],
    ]
}

fn extended(header: [u8; HEADER], items: Items) -> Vec<u8> {
    let items = items.bytes();
    // All kinds of items together, each once, are far shorter than MAX_ITEMS.
    let length = (items.len() as u16).to_be_bytes();
    [&header[..], &length, &items].concat()
}
