//! The status of failover: which connection server is in front.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a candidate of failover knows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Failover {
    /// "front", "standby" or "handing over"; where baton moves no address, "external" or "routed".
    pub state: String,
    /// The candidates, the preferred one first.
    pub candidates: Vec<String>,
    /// The candidate that is in front, if that is known.
    pub front: Option<String>,
    /// The epoch of this node's time in front, or the highest epoch that it has heard of.
    pub epoch: u64,
    /// How often this node took the cluster addresses since its daemon started.
    pub takeovers: u64,
    /// A node that is heard but not understood, if this candidate understands nobody. Such a candidate has another
    /// key, version or time than the cluster, and does not take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unintelligible: Option<String>,
}

impl fmt::Display for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (state, candidates) = (&self.state, self.candidates.join(", "));
        match (state.as_str(), &self.front) {
            ("external" | "routed", _) => {
                return write!(f, "failover: {state} ({candidates})");
            }
            (_, Some(front)) => write!(f, "failover: {state}, {front} is in front")?,
            (_, None) => write!(f, "failover: {state}, nobody is in front")?,
        }
        let (epoch, takeovers) = (self.epoch, self.takeovers);
        write!(
            f,
            " (epoch {epoch}; {takeovers} takeovers here; {candidates})"
        )?;
        match &self.unintelligible {
            Some(other) => write!(
                f,
                "; messages from {other} arrive, but none from any node can be accepted: does not take over (check key, version, time)"
            ),
            None => Ok(()),
        }
    }
}
