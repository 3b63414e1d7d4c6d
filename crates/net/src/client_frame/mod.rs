//! Frames of clients: an Ethernet header and one whole packet of TCP over IPv4. They are made from a client's stream,
//! and read again.

mod build;
mod read;

pub use build::{PIECE, Stream};
pub use read::{ETHERNET, NotTcp, Segment};

/// One for tests.
#[cfg(test)]
fn stream() -> Stream {
    Stream {
        mac: [2, 0, 0, 0, 0, 9],
        client: "198.51.100.7:40000".parse().unwrap(),
        cluster: "10.77.0.100:80".parse().unwrap(),
        ack: 77,
        window: 501,
        stamps: None,
    }
}
