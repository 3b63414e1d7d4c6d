//! `[cs]`: limits of a connection server.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::reading::schema::keys;
use crate::values::duration::{DAY, HOUR, MILLISECOND, SECOND, duration};
use crate::values::number::number;

/// Limits of a connection server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionServer {
    /// The number of entries in the map `tcbs`, at most 2^28.
    pub flows: NonZeroU32,
    /// The time without a packet after which an open connection is forgotten, 1 s to 30 days.
    pub idle: Duration,
    /// The time after which a closed connection is forgotten, 1 s to 30 days.
    pub closing: Duration,
    /// The time for which packets of an unknown connection get no answer, before they get a RST, 0 to 1 h.
    pub stray_grace: Duration,
    /// The time after which a data server counts as dead if neither its daemon nor its program is heard, 200 ms to 1 h.
    pub dead_after: Duration,
    /// The number of requests that are kept so that their responses can be resumed, at most 2^24.
    pub kept_requests: NonZeroU32,
    /// How long a request waits for a dispatcher on another node, 1 ms to 100 ms.
    pub dispatcher_patience: Duration,
    /// The time without data after which a connection is idle and leaves a data server that drains, 2 s to
    /// 1 h. `None`: idle connections stay until their next request.
    pub release_after: Option<Duration>,
}

keys! {
    /// Limits of a connection server.
    Keys "[cs]" {
        /// The number of TCB entries, one for each connection, 128 bytes each. The table is allocated at start.
        flows: NonZeroU32 = number(1..=1u32 << 28), default 1048576;
        /// An entry is forgotten after this long without a packet.
        idle: Duration = duration(SECOND..=30 * DAY), default "1h";
        /// An entry whose client has closed is forgotten after this long.
        closing: Duration = duration(SECOND..=30 * DAY), default "60s";
        /// Packets of a connection that no data server has are dropped in silence for this long, because the first
        /// segment of a request may merely be late. Then the data servers are asked once more, and the next packet
        /// gets a RST.
        stray_grace: Duration = duration(Duration::ZERO..=HOUR), default "1s";
        /// A data server counts as dead when neither its daemon nor its BPF program has answered for so long, 200ms to
        /// 1h. Its connections then go to other data servers, or their clients get a RST.
        dead_after: Duration = duration(200 * MILLISECOND..=HOUR), default "1s";
        /// How many requests are kept so that their responses can be resumed (resume, below). New ones displace the
        /// oldest.
        kept_requests: NonZeroU32 = number(1..=1u32 << 24), default 16384;
        /// How long a request waits for a dispatcher on another node (below), 1 to 100 ms. After that, and for a while
        /// after many late answers, the data server that has asked chooses itself.
        dispatcher_patience: Duration = duration(MILLISECOND..=100 * MILLISECOND), default "5ms";
        /// When a data server drains, its idle connections leave with their next request. With this key they also
        /// leave without a request: a connection without data for this long, 2 s to 1 h, is given to another server if
        /// each of its requests has its whole response. A connection in the middle of a response stays, however long
        /// the response pauses (as streams of events do). By default no connection leaves without a request.
        release_after: Duration = duration(2 * SECOND..=HOUR), example "10s";
    }
}

impl Keys {
    /// The section, if all of it could be read.
    pub(crate) fn finish(self) -> Option<ConnectionServer> {
        Some(ConnectionServer {
            flows: self.flows.value()?,
            idle: self.idle.value()?,
            closing: self.closing.value()?,
            stray_grace: self.stray_grace.value()?,
            dead_after: self.dead_after.value()?,
            kept_requests: self.kept_requests.value()?,
            dispatcher_patience: self.dispatcher_patience.value()?,
            release_after: self.release_after.optional()?,
        })
    }
}
