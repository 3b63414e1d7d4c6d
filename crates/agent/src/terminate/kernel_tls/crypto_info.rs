//! What the kernel is told of a key, and says of it: the structures of linux/tls.h, as bytes.
//!
//! ```text
//!  version: 2 | cipher: 2 | IV | key | salt | number of the next record: 8, big-endian
//!  AES-GCM: an IV of 8 bytes, a key of 16 or 32, and a salt of 4. ChaCha20-Poly1305: an IV of 12, a key of 32, no salt.
//! ```

use std::io;
use std::os::fd::AsFd;

use baton_tls::{Cipher, SendingKey, Version};
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use zeroize::Zeroizing;

/// The bytes of `tls12_crypto_info_aes_gcm_128`.
const SHORT: usize = 40;
/// The bytes of `tls12_crypto_info_aes_gcm_256`, and of `tls12_crypto_info_chacha20_poly1305`.
const LONG: usize = 56;
/// The bytes of a record's number, with which each structure ends.
const NUMBER: usize = 8;
/// The bytes of AES-GCM's salt, with which a nonce begins.
const SALT: usize = 4;

sockopt_impl!(
    /// The key of the sending direction, with a cipher whose structure is short.
    ShortKey, Both, libc::SOL_TLS, libc::TLS_TX, [u8; SHORT]
);
sockopt_impl!(
    /// The key of the sending direction, with a cipher whose structure is long.
    LongKey, Both, libc::SOL_TLS, libc::TLS_TX, [u8; LONG]
);

/// The key as the kernel wants it.
fn crypto_info(key: &SendingKey) -> Zeroizing<Vec<u8>> {
    let version = match key.suite.version() {
        Version::Tls12 => [3, 3],
        Version::Tls13 => [3, 4],
    };
    let (cipher, salt) = match key.suite.cipher_kind() {
        Cipher::Aes128Gcm => (libc::TLS_CIPHER_AES_GCM_128, SALT),
        Cipher::Aes256Gcm => (libc::TLS_CIPHER_AES_GCM_256, SALT),
        Cipher::Chacha20Poly1305 => (libc::TLS_CIPHER_CHACHA20_POLY1305, 0),
    };
    let (salt, iv) = key.iv.split_at(salt);
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONG));
    bytes.extend(u16::from_be_bytes(version).to_ne_bytes());
    bytes.extend(cipher.to_ne_bytes());
    for part in [iv, &key.key, salt, &key.sequence.to_be_bytes()] {
        bytes.extend(part);
    }
    bytes
}

/// Gives a socket that has the protocol `tls` the key with which the kernel encrypts all that is written from now on.
///
/// # Errors
/// That of setsockopt(). The kernel then encrypts nothing.
pub(super) fn set(socket: &impl AsFd, key: &SendingKey) -> io::Result<()> {
    let bytes = crypto_info(key);
    if let Ok(short) = bytes.as_slice().try_into() {
        return Ok(setsockopt(socket, ShortKey, short)?);
    }
    let long = bytes.as_slice().try_into().map_err(|_| Errno::EINVAL)?;
    Ok(setsockopt(socket, LongKey, long)?)
}

/// The number of the next record that the kernel makes.
///
/// # Errors
/// That of getsockopt().
pub(super) fn next_record(socket: &impl AsFd, cipher: Cipher) -> io::Result<u64> {
    let number = match cipher {
        Cipher::Aes128Gcm => {
            let info = Zeroizing::new(getsockopt(socket, ShortKey)?);
            info.last_chunk().copied()
        }
        Cipher::Aes256Gcm | Cipher::Chacha20Poly1305 => {
            let info = Zeroizing::new(getsockopt(socket, LongKey)?);
            info.last_chunk().copied()
        }
    };
    let number: [u8; NUMBER] = number.ok_or(Errno::EINVAL)?;
    Ok(u64::from_be_bytes(number))
}

#[cfg(test)]
mod tests {
    use baton_tls::Suite;

    use super::*;

    fn key(suite: Suite, length: usize) -> SendingKey {
        SendingKey {
            suite,
            key: Zeroizing::new((0..length).map(|at| 0x40 + at as u8).collect()),
            iv: Zeroizing::new(std::array::from_fn(|at| 0x10 + at as u8)),
            sequence: 0x0102,
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn structures_are_those_of_the_kernel() {
        let short = crypto_info(&key(Suite::Aes128GcmSha256, 16));
        assert_eq!(
            hex(&short),
            "04033300\
             1415161718191a1b\
             404142434445464748494a4b4c4d4e4f\
             10111213\
             0000000000000102"
        );
        let older = crypto_info(&key(Suite::EcdheRsaAes128Gcm, 16));
        assert_eq!(
            (&older[..4], &older[4..]),
            (&[3, 3, 51, 0][..], &short[4..])
        );
        let long = "404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f";
        assert_eq!(
            hex(&crypto_info(&key(Suite::Aes256GcmSha384, 32))),
            format!(
                "04033400{}{long}{}0000000000000102",
                "1415161718191a1b", "10111213"
            )
        );
        assert_eq!(
            hex(&crypto_info(&key(Suite::Chacha20Poly1305Sha256, 32))),
            format!(
                "04033600{}{long}0000000000000102",
                "101112131415161718191a1b"
            )
        );
    }

    #[test]
    fn structures_have_the_kernels_sizes() {
        assert_eq!(SHORT, size_of::<libc::tls12_crypto_info_aes_gcm_128>());
        assert_eq!(LONG, size_of::<libc::tls12_crypto_info_aes_gcm_256>());
        assert_eq!(LONG, size_of::<libc::tls12_crypto_info_chacha20_poly1305>());
        for (suite, key_length, length) in [
            (Suite::Aes128GcmSha256, 16, SHORT),
            (Suite::Aes256GcmSha384, 32, LONG),
            (Suite::Chacha20Poly1305Sha256, 32, LONG),
        ] {
            assert_eq!(crypto_info(&key(suite, key_length)).len(), length);
        }
    }
}
