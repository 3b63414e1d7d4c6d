//! What a node knows of the others: whether they live, how far their clocks are off, which version of LCCP they speak,
//! and which keys it shares with them; and how its daemon reaches theirs.

pub mod clocks;
pub mod heartbeat;
pub mod keys;
pub mod liveness;
pub mod messenger;
pub mod retransmission;
pub mod sealing;
pub mod streams;
pub mod versions;

use baton_core::{Moment, liveness::Liveness, membership::Membership};
use baton_dataplane::RefusedNodes;
use baton_wire::Address;

use self::{clocks::Clocks, versions::Versions};

/// A dead data server for whose connections the others are being asked.
pub struct Dying {
    address: Address,
    /// When they are asked next.
    next: Moment,
    /// How often they were asked.
    asked: u32,
}

/// What the daemon knows of the other nodes.
pub struct Peers {
    /// Which nodes are heard, what they say of their services, and which data servers can be used.
    pub membership: Membership,
    /// Which data servers live.
    pub liveness: Liveness,
    /// Dead data servers for whose connections the others are being asked.
    pub dying: Vec<Dying>,
    pub clocks: Clocks,
    pub versions: Versions,
    /// Nodes whose messages the programs have refused.
    pub refused: RefusedNodes,
}

impl Peers {
    /// Makes the state of a daemon that has heard nobody yet.
    pub fn new(membership: Membership, liveness: Liveness, refused: RefusedNodes) -> Self {
        Self {
            membership,
            liveness,
            dying: Vec::new(),
            clocks: Clocks::default(),
            versions: Versions::default(),
            refused,
        }
    }
}
