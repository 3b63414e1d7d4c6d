//! The tag: proof that a node of this cluster wrote a message.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;

use crate::LccpKey;

/// The tag of a message: SipHash-2-4 over the `header`'s bytes before the tag, then the `body`.
///
/// `header` is the first 72 bytes of the message (`LCCP_TAGGED_BYTES`), `body` the
/// `be_body_length` bytes behind the header. The result travels as a big-endian `u64`.
pub fn tag(key: &LccpKey, header: &[u8; TAGGED_BYTES], body: &[u8]) -> u64 {
    let mut hasher = hasher(key.words());
    hasher.write(header);
    hasher.write(body);
    hasher.finish()
}

/// SipHash-2-4 with 64-bit output (Aumasson and Bernstein, 2012).
///
/// `key` is the 16-byte key read as two little-endian words, as in the reference implementation.
pub fn siphash24(key: [u64; 2], bytes: &[u8]) -> u64 {
    hasher(key).hash(bytes)
}

/// Bytes of the header that the tag covers.
pub(crate) const TAGGED_BYTES: usize = baton_abi::LCCP_TAGGED_BYTES as usize;

fn hasher(key: [u64; 2]) -> SipHasher24 {
    SipHasher24::new_with_keys(key[0], key[1])
}
