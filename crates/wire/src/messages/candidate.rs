//! CANDIDATE: which of the connection servers that can be in front is in front, and since which epoch.

use baton_abi::{
    LCCP_CANDIDATE_FRONT, LCCP_CANDIDATE_HANDING, LCCP_CANDIDATE_STANDBY, LccpCandidate,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::numbered::byte;
use crate::Address;

/// What a candidate says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The epoch of its own time in front, or on standby the highest epoch that it has heard of. It grows with each
    /// takeover.
    pub epoch: u64,
    /// Its state.
    pub state: CandidateState,
}

/// The state of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CandidateState {
    /// It is on standby.
    Standby,
    /// It is in front: it has the cluster addresses.
    Front,
    /// It has the cluster addresses until the node `to` has them, which is to take them at once, under the next epoch.
    Handing {
        /// The address of the node that takes over.
        to: Address,
    },
}

impl Candidate {
    pub(crate) fn write(self) -> Vec<u8> {
        let (state, next) = match self.state {
            CandidateState::Standby => (const { byte(LCCP_CANDIDATE_STANDBY) }, [0; 16]),
            CandidateState::Front => (const { byte(LCCP_CANDIDATE_FRONT) }, [0; 16]),
            CandidateState::Handing { to } => (const { byte(LCCP_CANDIDATE_HANDING) }, to.octets()),
        };
        let body = LccpCandidate {
            be_epoch: self.epoch.to_be(),
            state,
            next,
            ..LccpCandidate::default()
        };
        body.as_bytes().to_vec()
    }

    /// Reads a body. Returns `None` if it is too short or names no state, or if it hands over to no node.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (found, _) = LccpCandidate::read_from_prefix(body).ok()?;
        let state = match u32::from(found.state) {
            LCCP_CANDIDATE_STANDBY => CandidateState::Standby,
            LCCP_CANDIDATE_FRONT => CandidateState::Front,
            LCCP_CANDIDATE_HANDING if found.next != [0; 16] => CandidateState::Handing {
                to: Address::from_octets(found.next),
            },
            _ => return None,
        };
        Some(Self {
            epoch: u64::from_be(found.be_epoch),
            state,
        })
    }
}
