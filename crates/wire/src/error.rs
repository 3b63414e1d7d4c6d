//! What can be wrong with a value from which a message is to be made.

use std::net::IpAddr;

/// Why a value could not be made. The text says what was wrong and what to do about it, and never
/// quotes a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cluster key has the wrong length.
    #[error(
        "the cluster key has {found} characters, not 64 hex digits; \
         make one with: openssl rand -hex 32"
    )]
    KeyLength {
        /// Characters found, without surrounding white space.
        found: usize,
    },
    /// The cluster key has a character that is not a hex digit.
    #[error(
        "the cluster key's character {position} is not a hex digit; \
         make a key with: openssl rand -hex 32"
    )]
    KeyDigit {
        /// The position of that character, counted from 1.
        position: usize,
    },
    /// The cluster key consists of zeros alone, which means "no key" in the programs' settings.
    #[error("the cluster key is all zeros; make one with: openssl rand -hex 32")]
    KeyZero,
    /// One end of a flow is IPv4, the other IPv6.
    #[error(
        "the flow's client {client} and cluster address {cluster} are of different \
         IP versions; a packet has only one"
    )]
    MixedFamilies {
        /// The client's address.
        client: IpAddr,
        /// The cluster address.
        cluster: IpAddr,
    },
    /// The 32-bit form of the address is zero, which means "no address".
    #[error(
        "the 32-bit form of {address} is zero, which means no address; \
         give the node or the cluster another one"
    )]
    NoShortAddress {
        /// The address.
        address: IpAddr,
    },
    /// The request is too long to be sent to a data server.
    #[error("the request has {bytes} bytes, more than one segment holds; it cannot be resumed")]
    RequestTooLong {
        /// The length of the request.
        bytes: usize,
    },
    /// The TCP window scale is larger than RFC 7323 allows.
    #[error("window scale {found} is above 14, the largest that RFC 7323 allows")]
    WindowScale {
        /// The scale that was asked for.
        found: u8,
    },
    /// The share is above the whole.
    #[error("{found} permille is more than 1000, the whole")]
    Permille {
        /// The value that was asked for.
        found: u16,
    },
    /// There are more services than one HELLO can hold.
    #[error(
        "{found} services do not fit one HELLO, which holds {max}; spread them with Hello::batches"
    )]
    TooManyServices {
        /// How many services there are.
        found: usize,
        /// How many fit.
        max: usize,
    },
}
