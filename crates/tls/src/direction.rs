//! One direction of a session: how its records are protected, and which record is next.

use std::fmt;

use ring::{aead, hkdf};
use zeroize::Zeroizing;

use crate::suite::{NONCE, Suite, Version};

/// The number of a direction's next record stays below this. Nobody sends so many: at ten million records a second, it
/// takes nearly a year.
pub(crate) const RECORDS_MOST: u64 = 1 << 48;

/// The protection of one direction.
pub(crate) struct Direction {
    pub(crate) suite: Suite,
    /// What key and IV come from, of [`Suite::material_length`] bytes. In TLS 1.3 the next keys come from it as well.
    pub(crate) material: Zeroizing<Vec<u8>>,
    /// It is in a box because it is large, and sessions move about in memory.
    pub(crate) key: Box<aead::LessSafeKey>,
    pub(crate) iv: Zeroizing<[u8; NONCE]>,
    /// The number of the next record.
    pub(crate) sequence: u64,
}

impl Direction {
    /// The direction that goes on with the record of number `sequence`; `None` if the material has the wrong length, or
    /// the number is out of bounds.
    pub(crate) fn new(suite: Suite, material: Zeroizing<Vec<u8>>, sequence: u64) -> Option<Self> {
        if material.len() != suite.material_length() || sequence >= RECORDS_MOST {
            return None;
        }
        let (key, iv) = key_and_iv(suite, &material);
        Some(Self {
            suite,
            key: cipher(suite, &key),
            material,
            iv,
            sequence,
        })
    }

    /// Goes on with the next key (RFC 8446, section 7.2). Only TLS 1.3 can do so.
    pub(crate) fn update(&mut self) {
        debug_assert_eq!(self.suite.version(), Version::Tls13);
        let mut next = Zeroizing::new(vec![0; self.material.len()]);
        expand_label(self.suite, &self.material, b"traffic upd", &mut next);
        self.material = next;
        let (key, iv) = key_and_iv(self.suite, &self.material);
        self.key = cipher(self.suite, &key);
        self.iv = iv;
        self.sequence = 0;
    }

    /// The nonce of the next record: the IV and the record's number (RFC 8446, section 5.3, and RFC 7905, section 2).
    /// RFC 5288 leaves AES-GCM in TLS 1.2 free to choose. rustls made it like this there too, and the handshake's last
    /// record has one of these nonces already.
    pub(crate) fn nonce(&self) -> [u8; NONCE] {
        let mut nonce = *self.iv;
        for (byte, number) in nonce[NONCE - 8..]
            .iter_mut()
            .zip(self.sequence.to_be_bytes())
        {
            *byte ^= number;
        }
        nonce
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direction")
            .field("suite", &self.suite)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

type KeyAndIv = (Zeroizing<Vec<u8>>, Zeroizing<[u8; NONCE]>);

/// The key and the IV that follow from the material (RFC 8446, section 7.3). The material must have the right length.
pub(crate) fn key_and_iv(suite: Suite, material: &[u8]) -> KeyAndIv {
    let mut key = Zeroizing::new(vec![0; suite.cipher().key_len()]);
    let mut iv = Zeroizing::new([0; NONCE]);
    match suite.version() {
        Version::Tls13 => {
            expand_label(suite, material, b"key", &mut key);
            expand_label(suite, material, b"iv", &mut iv[..]);
        }
        Version::Tls12 => {
            let (its_key, its_iv) = material.split_at(key.len());
            key.copy_from_slice(its_key);
            iv.copy_from_slice(its_iv);
        }
    }
    (key, iv)
}

fn cipher(suite: Suite, key: &[u8]) -> Box<aead::LessSafeKey> {
    let key = aead::UnboundKey::new(suite.cipher(), key);
    // It fails only for a key of another length, and key_and_iv() makes them as long as the cipher says.
    Box::new(aead::LessSafeKey::new(
        key.expect("the key has the cipher's length"),
    ))
}

/// HKDF-Expand-Label of RFC 8446, section 7.1, with an empty context.
fn expand_label(suite: Suite, secret: &[u8], label: &[u8], out: &mut [u8]) {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    const PREFIX: &[u8] = b"tls13 ";
    let length = (out.len() as u16).to_be_bytes(); // at most 48
    let label_length = [(PREFIX.len() + label.len()) as u8]; // at most 17
    let info = [&length[..], &label_length, PREFIX, label, &[0]];
    (hkdf::Prk::new_less_safe(suite.hash(), secret).expand(&info, Length(out.len())))
        .and_then(|expanded| expanded.fill(out))
        // It fails only for more than 255 times the hash's length, or if the two lengths differ.
        .expect("at most 48 bytes are expanded");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.split_whitespace().collect();
        digits
            .iter()
            .map(|byte| u8::from_str_radix(byte, 16).unwrap())
            .collect()
    }

    /// The server's application traffic secret of RFC 8448, section 3, with the key and the IV made from it.
    #[test]
    fn key_and_iv_are_those_of_the_rfcs_example() {
        let secret = bytes(
            "a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b 4f 1f 3f cb 63 16 43",
        );
        let (key, iv) = key_and_iv(Suite::Aes128GcmSha256, &secret);
        assert_eq!(
            *key,
            bytes("9f 02 28 3b 6c 9c 07 ef c2 6b b9 f2 ac 92 e3 56")
        );
        assert_eq!(iv[..], bytes("cf 78 2b 88 dd 83 54 9a ad f1 e9 84"));
    }

    #[test]
    fn material_of_another_length_is_refused() {
        for &suite in Suite::ALL {
            let right = suite.material_length();
            for (length, sequence, is_right) in [
                (right, 7, true),
                (right - 1, 7, false),
                (right + 1, 7, false),
                (right, RECORDS_MOST, false),
            ] {
                let direction = Direction::new(suite, vec![1; length].into(), sequence);
                assert_eq!(direction.is_some(), is_right, "{suite:?}");
            }
        }
    }

    #[test]
    fn debug_output_has_no_secret() {
        let direction = Direction::new(Suite::Aes128GcmSha256, vec![0xa7; 32].into(), 3).unwrap();
        assert_eq!(
            format!("{direction:?}"),
            "Direction { suite: Aes128GcmSha256, sequence: 3, .. }"
        );
    }
}
