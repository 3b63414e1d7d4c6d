//! What a channel has done, over all its links.

use super::Fault;

baton_core::counters! {
    /// Counters since the channel was made.
    pub struct Counters("forwarding_") {
        /// Connections that were made.
        made,
        /// Connections that were asked for but not made.
        refused,
        /// Connections that either end ended with Reset.
        resets,
        /// Connections that ended because the channel was lost.
        lost,
        /// Bytes of messages sent.
        bytes_sent,
        /// Bytes of messages received.
        bytes_received,
        /// How often a connection had something to send and no credit.
        stalls,
        /// Frames that were already on their way when this end gave up their connection or listener.
        late,
        /// Frames that were [`Fault::Stale`].
        stale,
        /// Frames that were [`Fault::UnknownTag`].
        unknown,
        /// Frames that were [`Fault::BeyondCredit`].
        beyond_credit,
        /// Frames that were [`Fault::Unread`].
        unread,
        /// Frames with any other fault.
        faults,
        /// Links given up because bytes that arrived were no frame.
        malformed,
        /// Links that ended within a frame.
        truncated,
    }
}

impl Counters {
    /// How many well-formed frames of the other end broke the protocol's rules.
    pub fn broken_rules(&self) -> u64 {
        self.stale + self.unknown + self.beyond_credit + self.unread + self.faults
    }

    pub(super) fn count(&mut self, fault: &Fault) {
        let counter = match fault {
            Fault::Stale { .. } => &mut self.stale,
            Fault::UnknownTag { .. } => &mut self.unknown,
            Fault::BeyondCredit { .. } => &mut self.beyond_credit,
            Fault::Unread => &mut self.unread,
            _ => &mut self.faults,
        };
        *counter += 1;
    }
}

/// The state of a channel at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections that are being made, open, or not yet closed by their user.
    pub connections: u64,
    /// Those of `connections` that wait for credit.
    pub stalled: u64,
    /// How many bytes all connections may send: the sum of L_s - A_s.
    pub credit: u64,
    /// Bytes that have arrived and were not read.
    pub buffered: u64,
    /// Bytes that wait to be sent.
    pub queued: u64,
}
