//! The tag: proof that a node of this cluster wrote a message, made with the key that its two nodes share.

use std::fmt;
use std::hash::Hasher as _;
use std::net::Ipv4Addr;

use siphasher::sip::SipHasher24;

/// The tag of a message: SipHash-2-4 over
///
/// 1. the `header`'s bytes before the tag, the first 72 of the message (`LCCP_TAGGED_BYTES`),
/// 2. the addresses of the `pair`'s sender and receiver, 4 bytes each,
/// 3. the body, filled up with zeros to a multiple of 32 bytes; or, if the header says that there is none, the
///    24 bytes that [`carried`] takes of the client's packet.
///
/// `rest` is everything behind the tag. The result travels as a big-endian `u64`.
pub fn tag(key: &LccpKey, header: &[u8; TAGGED_BYTES], pair: NodePair, rest: &[u8]) -> u64 {
    let mut hasher = hasher(key.words());
    hasher.write(header);
    hasher.write(&pair.from.octets());
    hasher.write(&pair.to.octets());
    match usize::from(u16::from_be_bytes([
        header[BODY_LENGTH_AT],
        header[BODY_LENGTH_AT + 1],
    ])) {
        0 => hasher.write(&carried(rest)),
        length => {
            let body = rest.get(..length).unwrap_or(rest);
            hasher.write(body);
            let unfilled = body.len() % BODY_CHUNK;
            if unfilled > 0 {
                hasher.write(&[0; BODY_CHUNK][unfilled..]);
            }
        }
    }
    hasher.finish()
}

/// What the tag covers of a carried packet: the first 8 bytes of its IPv4 header (length, identification, fragment),
/// then bytes 4 to 19 of its TCP header (both numbers, flags, window, urgent pointer) with zeros in place of the
/// checksum. A header that is incomplete counts as zeros.
///
/// Addresses and ports are in the message's own header, and the packet must belong to that flow. Options and payload
/// are not covered. Nor is the TCP checksum, which may still be pending where the message is made and is complete where
/// it arrives.
fn carried(packet: &[u8]) -> [u8; CARRIED_BYTES] {
    let mut covered = [0; CARRIED_BYTES];
    let (ip, tcp) = covered.split_at_mut(CARRIED_OF_IP);
    if let Some(header) = packet.get(..IPV4_HEADER_BYTES) {
        ip.copy_from_slice(&header[..CARRIED_OF_IP]);
        let tcp_at = usize::from(header[0] & 0xf) * 4;
        if let Some(header) = packet.get(tcp_at..tcp_at + TCP_HEADER_BYTES) {
            tcp.copy_from_slice(&header[TCP_PORTS_BYTES..]);
            tcp[CHECKSUM_BEHIND_PORTS].fill(0);
        }
    }
    covered
}

/// The sender and the receiver of a message, as its IP header names them. The tag covers both addresses, so a message
/// that is seen on its way cannot be sent back to its sender or to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodePair {
    /// The sender.
    pub from: Ipv4Addr,
    /// The receiver.
    pub to: Ipv4Addr,
}

/// The SipHash key that tags the messages between two nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LccpKey([u64; 2]);

impl LccpKey {
    /// The key with these two words, for bytes that are not derived from a [`ClusterKey`](crate::ClusterKey), as in
    /// tests.
    pub const fn from_words(words: [u64; 2]) -> Self {
        Self(words)
    }

    /// The two words k0 and k1, for `peer_keys.key` and `data_server.key`.
    pub const fn words(&self) -> [u64; 2] {
        self.0
    }
}

impl fmt::Debug for LccpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LccpKey(secret)")
    }
}

/// SipHash-2-4 with 64-bit output (Aumasson and Bernstein, 2012).
///
/// `key` is the 16-byte key read as two little-endian words, as in the reference implementation.
pub fn siphash24(key: [u64; 2], bytes: &[u8]) -> u64 {
    hasher(key).hash(bytes)
}

/// Bytes of the header that the tag covers.
pub(crate) const TAGGED_BYTES: usize = baton_abi::LCCP_TAGGED_BYTES as usize;
/// Bytes of the tag, which is behind them.
pub(crate) const TAG_BYTES: usize = size_of::<u64>();
/// The body is hashed in pieces of this many bytes; the last piece is filled up with zeros.
const BODY_CHUNK: usize = baton_abi::LCCP_BODY_CHUNK as usize;
const BODY_LENGTH_AT: usize = 4;
const CARRIED_OF_IP: usize = 8;
const CARRIED_BYTES: usize = 24;
const IPV4_HEADER_BYTES: usize = 20;
const TCP_HEADER_BYTES: usize = 20;
const TCP_PORTS_BYTES: usize = 4;
const CHECKSUM_BEHIND_PORTS: std::ops::Range<usize> = 12..14;

fn hasher(key: [u64; 2]) -> SipHasher24 {
    SipHasher24::new_with_keys(key[0], key[1])
}
