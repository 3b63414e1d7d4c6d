//! `[failover]`: which of several connection servers has the cluster addresses.

use std::time::Duration;

use toml::Spanned;

use crate::reading::schema::keys;
use crate::reading::value::{list, plain, text};
use crate::values::duration::{MILLISECOND, SECOND, duration};
use crate::values::name::NodeName;
use crate::values::words::words;

/// Several connection servers of which one at a time, the one in front, has the cluster addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The candidates, the most preferred one first. There is at least one, and each is listed once.
    pub candidates: Vec<NodeName>,
    /// The time after which a candidate that is not heard counts as gone, 40 ms to 1 min.
    pub detection: Duration,
    /// Whether a preferred candidate that comes back takes the addresses back.
    pub preempt: bool,
    /// How packets for the cluster addresses come to the candidate in front.
    pub address: FrontAddress,
}

words! {
    /// The way in which packets for the cluster addresses come to the connection server in front.
    pub enum FrontAddress "address =" {
        /// The connection server in front has the addresses on its interface, and announces them by ARP.
        Managed = "managed",
        /// Something outside baton moves the addresses: keepalived, or an operator.
        External = "external",
        /// Routers bring the packets, and every candidate always has the addresses on `lo`.
        Routed = "routed",
    }
}

keys! {
    /// With this section there are several connection servers, one of them in front: if it fails, the next one takes
    /// over the cluster addresses with all connections. Without it there is no failover: all connection servers have
    /// the addresses at the same time, so there should be only one, or a switch. This section excludes a switch, and a
    /// service's connection_servers.
    Keys "[failover]" {
        /// Nodes with the role "cs". The first is preferred to the second, and so on. Default: all nodes with that
        /// role, in the order of this file.
        candidates: Vec<Spanned<NodeName>> = list(text), example ["cs1", "cs2"];
        /// A candidate that was not heard for so long counts as failed, 40 ms to 1 min. Each sends a sign of life every
        /// quarter of this time.
        detection: Duration = duration(40 * MILLISECOND..=60 * SECOND), default "300ms";
        /// Whether a preferred candidate that is back gets the addresses back, after four times that.
        preempt: bool = plain, default false;
        /// What brings the clients' packets to the connection server in front:
        ///   "managed"   baton does: the node in front has the cluster addresses on its interface, and announces them
        ///               by ARP
        ///   "external"  another program moves the addresses, keepalived for instance: baton leaves them alone, and
        ///               answers wherever packets arrive
        ///   "routed"    routers do, by BGP for instance: every candidate always has the addresses on lo
        address: FrontAddress = text, default "managed";
    }
}

impl Keys {
    /// The section, if all of it could be read.
    pub(crate) fn finish(self, candidates: Vec<NodeName>) -> Option<Failover> {
        Some(Failover {
            candidates,
            detection: self.detection.value()?,
            preempt: self.preempt.value()?,
            address: self.address.value()?,
        })
    }
}
