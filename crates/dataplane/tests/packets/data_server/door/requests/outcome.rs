//! What a request is to the door, and what becomes of it.

use super::super::owner::{HANDED_ON, LET_IN};
use crate::data_server::{adopt::loopback::ADOPTED, agent::reader::READS};
use crate::node::Counted;

/// What a request is to the door, whatever data server it is for.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The request is whole, and all servers read it alike.
    Plain,
    /// All servers read the request alike, and so many bytes of its body are still to come.
    GoesOn(i32),
    /// The request is whole, all servers read it alike, and so many bytes behind it are another request.
    Divided(i32),
    /// All servers read the request alike. Its body is chunked or very long and goes on behind the packet, so the door
    /// follows it.
    Followed,
    /// The head of the request goes on in another packet, but this packet shows which data server the request is for.
    Cut,
    /// Servers may read the request in different ways, or this packet does not show which data server the request is
    /// for.
    Odd,
}

/// What becomes of a packet that begins with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server here gets the request. The next request is to begin so many bytes behind the packet's end; if the
    /// number is negative, the door cuts so many bytes off the packet.
    Here(i32),
    /// The server here gets the request, and the door follows its body.
    HereFollowed,
    /// The connection goes to data server 1 with the request.
    Elsewhere,
    /// The agent here gets the connection with the request.
    Agent,
}

impl Outcome {
    pub fn of(kind: Kind, is_here: bool) -> Self {
        match kind {
            Kind::Plain if is_here => Self::Here(0),
            Kind::GoesOn(bytes) if is_here => Self::Here(bytes),
            Kind::Divided(bytes) if is_here => Self::Here(-bytes),
            Kind::Followed if is_here => Self::HereFollowed,
            Kind::Cut if is_here => Self::Agent,
            Kind::Odd => Self::Agent,
            _ => Self::Elsewhere,
        }
    }

    /// Returns the counters that move. `is_first`: the request is the first one of its connection.
    pub fn counted(self, is_first: bool) -> Vec<(&'static str, u64)> {
        let let_in = if is_first { ADOPTED } else { LET_IN };
        let cut: Counted<'_> = &[("ds_door_cut", 1), ("ds_door_waits", 1)];
        match self {
            Self::Here(..0) => [let_in, cut].concat(),
            Self::Here(_) | Self::HereFollowed => let_in.to_vec(),
            Self::Elsewhere => HANDED_ON.to_vec(),
            Self::Agent => READS.to_vec(),
        }
    }
}
