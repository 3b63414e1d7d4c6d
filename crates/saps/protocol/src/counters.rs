//! What a channel has done, over all its links.

use super::Fault;

/// Since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that came to be.
    pub made: u64,
    /// Connections that did not.
    pub refused: u64,
    /// Ended by Reset, by either end.
    pub resets: u64,
    /// Ended because the channel was lost.
    pub lost: u64,
    /// Bytes of messages sent.
    pub bytes_sent: u64,
    /// Bytes of messages received.
    pub bytes_received: u64,
    /// How often a connection had something to send and no credit.
    pub stalls: u64,
    /// Frames about connections and listeners that we have given up, on their way when the other end learned of it.
    pub late: u64,
    /// [`Fault::Stale`].
    pub stale: u64,
    /// [`Fault::UnknownTag`].
    pub unknown: u64,
    /// [`Fault::BeyondCredit`].
    pub beyond_credit: u64,
    /// [`Fault::Unread`].
    pub unread: u64,
    /// Every other fault.
    pub faults: u64,
    /// Links given up because what came was no frame.
    pub malformed: u64,
    /// Links that ended within a frame.
    pub truncated: u64,
}

impl Counters {
    /// How often the other end has broken a rule that all who speak in frames know.
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

    /// Adds those of another channel.
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

/// Right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Connections that are being made, open, or not yet closed by their user.
    pub connections: u64,
    /// Of these, those that wait for credit.
    pub stalled: u64,
    /// How much all of them may send: the sum of L_s - A_s.
    pub credit: u64,
    /// Bytes that came and were not read.
    pub buffered: u64,
    /// Bytes that wait to be sent.
    pub queued: u64,
}
