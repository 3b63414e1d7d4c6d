//! What a request is to the door, and what becomes of it.

use super::super::owner::{HANDED_ON, LET_IN};
use crate::data_server::{adopt::loopback::ADOPTED, agent::reader::READS};
use crate::node::Counted;

/// What a request is to the door, whosever it is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Whole, and all servers read it alike.
    Plain,
    /// The same, but for so many bytes of its body that are still to come.
    GoesOn(i32),
    /// The same, and so many bytes behind it are another request.
    Divided(i32),
    /// The same, and its body says where it ends as it goes on.
    Followed,
    /// Its head goes on in another packet. Whose it is can be read.
    Cut,
    /// Servers may read it in different ways, or what is here of it does not say whose it is.
    Odd,
}

/// What becomes of a packet that begins with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server here gets it. So many bytes behind the packet the next request is to begin; what is behind that is cut off.
    Here(i32),
    /// The server here gets it, and the door follows its body.
    HereFollowed,
    /// The connection is data server 1's with it.
    Elsewhere,
    /// The agent here gets the connection with it.
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

    /// The counters that move, as the first request of a connection or a further one.
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
