//! What can be wrong with a value before it becomes a message.

use std::net::IpAddr;

/// Why a value could not be made. The text says what was wrong and what to do about it, and never
/// quotes a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A cluster key of the wrong length.
    #[error(
        "the cluster key has {found} characters, not 64 hex digits; \
         make one with: openssl rand -hex 32"
    )]
    KeyLength {
        /// Characters found, without surrounding white space.
        found: usize,
    },
    /// A cluster key with something else than hex digits in it.
    #[error(
        "the cluster key's character {position} is not a hex digit; \
         make a key with: openssl rand -hex 32"
    )]
    KeyDigit {
        /// Which character, counted from 1.
        position: usize,
    },
    /// A cluster key of zeros alone, which means "no key" in the programs' settings.
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
    /// An address that 32 bits cannot tell from none.
    #[error(
        "{address} cannot be told from no address where only 32 bits of it are used; \
         give the node or the cluster another one"
    )]
    NoShortAddress {
        /// The address.
        address: IpAddr,
    },
    /// A request that is too long to be sent to a data server.
    #[error("the request has {bytes} bytes, more than one segment holds; it cannot be resumed")]
    RequestTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A TCP window scale beyond what RFC 7323 allows.
    #[error("window scale {found} is above 14, the largest that RFC 7323 allows")]
    WindowScale {
        /// The scale asked for.
        found: u8,
    },
    /// A share above the whole.
    #[error("{found} permille is more than 1000, the whole")]
    Permille {
        /// The value asked for.
        found: u16,
    },
    /// More services than one HELLO can hold.
    #[error(
        "{found} services do not fit one HELLO, which holds {max}; spread them with Hello::batches"
    )]
    TooManyServices {
        /// Services asked for.
        found: usize,
        /// How many fit.
        max: usize,
    },
}
