//! What a channel has done, over all its links.

use super::Fault;

/// Counters since the channel was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were made.
    pub made: u64,
    /// Connections that were asked for but not made.
    pub refused: u64,
    /// Connections that either end ended with Reset.
    pub resets: u64,
    /// Connections that ended because the channel was lost.
    pub lost: u64,
    /// Bytes of messages sent.
    pub bytes_sent: u64,
    /// Bytes of messages received.
    pub bytes_received: u64,
    /// How often a connection had something to send and no credit.
    pub stalls: u64,
    /// Frames that were already on their way when this end gave up their connection or listener.
    pub late: u64,
    /// Frames that were [`Fault::Stale`].
    pub stale: u64,
    /// Frames that were [`Fault::UnknownTag`].
    pub unknown: u64,
    /// Frames that were [`Fault::BeyondCredit`].
    pub beyond_credit: u64,
    /// Frames that were [`Fault::Unread`].
    pub unread: u64,
    /// Frames with any other fault.
    pub faults: u64,
    /// Links given up because bytes that arrived were no frame.
    pub malformed: u64,
    /// Links that ended within a frame.
    pub truncated: u64,
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

    /// Adds the counters of another channel.
    pub fn add(&mut self, other: &Self) {
        self.made += other.made;
        self.refused += other.refused;
        self.resets += other.resets;
        self.lost += other.lost;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.stalls += other.stalls;
        self.late += other.late;
        self.stale += other.stale;
        self.unknown += other.unknown;
        self.beyond_credit += other.beyond_credit;
        self.unread += other.unread;
        self.faults += other.faults;
        self.malformed += other.malformed;
        self.truncated += other.truncated;
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
