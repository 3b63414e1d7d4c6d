//! What clients have sent too early, as the data server's program shows it.

use std::time::Duration;

use baton_abi::{
    AnswerKey, EARLY_ASKS, EARLY_ENDS, EARLY_ONLY_ASKS, EARLY_STAMPED, EARLY_UNACKNOWLEDGED, TcbKey,
};
use zerocopy::FromBytes as _;

use crate::{DataServer, Error, ring::Ring};

/// A part of a client's stream that came too early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    /// The connection of the client.
    pub flow: TcbKey,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// The acknowledgement number of its packet.
    pub ack: u32,
    /// The window in its packet.
    pub window: u16,
    /// The client's timestamp in its packet, if that has one.
    pub tsval: Option<u32>,
    /// Whether the client sends nothing more behind it (FIN).
    pub ends: bool,
    /// What a dispatcher is to be asked about the request that begins here, if that is why the data waits.
    pub asks: Option<AnswerKey>,
    /// Whether the daemon is to send the data in again. If not, the agent that sent it in does so.
    pub comes_again: bool,
    /// Whether the data waits only until the client acknowledges what it has been sent.
    pub unacknowledged: bool,
    /// The data, at least one byte.
    pub bytes: Vec<u8>,
}

/// The reader's end of the ring `early`.
pub struct EarlyRing(Ring<Early>);

impl DataServer {
    /// Opens the reader's end of the ring `early`. At most one may be in use.
    pub fn early(&self) -> Result<EarlyRing, Error> {
        Ok(EarlyRing(Ring::of("early", &self.early, read_record)?))
    }
}

impl EarlyRing {
    /// Waits until there is early data, or for this long, in whole milliseconds.
    pub fn wait(&self, timeout: Duration) -> Result<impl Iterator<Item = Early> + '_, Error> {
        self.0.wait(timeout)
    }
}

fn read_record(record: &[u8]) -> Option<Early> {
    let (record, bytes) = baton_abi::Early::read_from_prefix(record).ok()?;
    let is = |flag: u32| u32::from(record.flags) & flag != 0;
    Some(Early {
        flow: record.flow,
        seq: record.seq,
        ack: record.ack,
        window: u16::from_be(record.be_window),
        tsval: is(EARLY_STAMPED).then_some(record.tsval),
        ends: is(EARLY_ENDS),
        asks: is(EARLY_ASKS).then_some(record.asks),
        comes_again: !is(EARLY_ONLY_ASKS),
        unacknowledged: is(EARLY_UNACKNOWLEDGED),
        bytes: bytes.get(..record.bytes as usize)?.to_vec(),
    })
}
