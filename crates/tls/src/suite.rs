//! The cipher suites: those of rustls' ring provider, all of which are authenticated encryption with forward secrecy.

use ring::{aead, hkdf};

use crate::record::{EXPLICIT, HEADER};

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl Version {
    /// The version's name, for people and for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        }
    }
}

/// The ciphers of the suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-GCM with a key of 128 bits.
    Aes128Gcm,
    /// AES-GCM with a key of 256 bits.
    Aes256Gcm,
    /// ChaCha20-Poly1305.
    Chacha20Poly1305,
}

/// The length of a nonce, and of the IV that it is made from.
pub(crate) const NONCE: usize = aead::NONCE_LEN;

macro_rules! suites {
    ($($variant:ident, $number:literal, $name:literal, $version:ident, $cipher:ident, $hash:ident;)*) => {
        /// A cipher suite. Its version of TLS follows from it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Suite {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Suite {
            /// All suites.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The suite's number in IANA's registry of TLS cipher suites.
            pub fn number(self) -> u16 {
                match self { $(Self::$variant => $number,)* }
            }

            /// The suite's name in IANA's registry of TLS cipher suites.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The version of TLS that the suite belongs to.
            pub fn version(self) -> Version {
                match self { $(Self::$variant => Version::$version,)* }
            }

            pub(crate) fn cipher(self) -> &'static aead::Algorithm {
                match self { $(Self::$variant => &aead::$cipher,)* }
            }

            /// The hash of the key schedule. That of TLS 1.2 has ended with the handshake, so there it is of no use.
            pub(crate) fn hash(self) -> hkdf::Algorithm {
                match self { $(Self::$variant => hkdf::$hash,)* }
            }
        }
    };
}

suites! {
    Aes128GcmSha256, 0x1301, "TLS_AES_128_GCM_SHA256", Tls13, AES_128_GCM, HKDF_SHA256;
    Aes256GcmSha384, 0x1302, "TLS_AES_256_GCM_SHA384", Tls13, AES_256_GCM, HKDF_SHA384;
    Chacha20Poly1305Sha256, 0x1303, "TLS_CHACHA20_POLY1305_SHA256", Tls13, CHACHA20_POLY1305, HKDF_SHA256;
    EcdheEcdsaAes128Gcm, 0xc02b, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Tls12, AES_128_GCM, HKDF_SHA256;
    EcdheEcdsaAes256Gcm, 0xc02c, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", Tls12, AES_256_GCM, HKDF_SHA384;
    EcdheRsaAes128Gcm, 0xc02f, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Tls12, AES_128_GCM, HKDF_SHA256;
    EcdheRsaAes256Gcm, 0xc030, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", Tls12, AES_256_GCM, HKDF_SHA384;
    EcdheRsaChacha20, 0xcca8, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Tls12, CHACHA20_POLY1305, HKDF_SHA256;
    EcdheEcdsaChacha20, 0xcca9, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", Tls12, CHACHA20_POLY1305, HKDF_SHA256;
}

impl Suite {
    /// The suite of this number, if it is one of these.
    pub fn of_number(number: u16) -> Option<Self> {
        (Self::ALL.iter().copied()).find(|suite| suite.number() == number)
    }

    /// The suite's cipher.
    pub fn cipher_kind(self) -> Cipher {
        match self.cipher() {
            cipher if cipher == &aead::AES_128_GCM => Cipher::Aes128Gcm,
            cipher if cipher == &aead::AES_256_GCM => Cipher::Aes256Gcm,
            _ => Cipher::Chacha20Poly1305,
        }
    }

    /// How many bytes longer a record is than its content, if nothing pads it.
    pub fn record_overhead(self) -> usize {
        let inside = match self.version() {
            Version::Tls13 => 1,
            Version::Tls12 if self.has_explicit_nonce() => EXPLICIT,
            Version::Tls12 => 0,
        };
        HEADER + inside + self.cipher().tag_len()
    }

    /// The number of bytes that determine the protection of one direction: in TLS 1.3 a traffic secret, and in TLS 1.2
    /// a key with its IV.
    pub(crate) fn material_length(self) -> usize {
        match self.version() {
            Version::Tls13 => hkdf::KeyType::len(&self.hash()),
            Version::Tls12 => self.cipher().key_len() + NONCE,
        }
    }

    /// Whether a part of each nonce is sent along with its record, as RFC 5288, section 3, has it.
    pub(crate) fn has_explicit_nonce(self) -> bool {
        self.version() == Version::Tls12 && self.cipher() != &aead::CHACHA20_POLY1305
    }
}
