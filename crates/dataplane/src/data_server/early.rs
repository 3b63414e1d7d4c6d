//! What clients have sent too early, as the data server's program shows it.

use std::time::Duration;

use baton_abi::{
    AnswerKey, EARLY_ASKS, EARLY_ENDS, EARLY_ONLY_ASKS, EARLY_STAMPED, EARLY_UNACKNOWLEDGED, TcbKey,
};
use zerocopy::FromBytes as _;

use crate::{DataServer, Error, ring::Ring};

/// A part of a client's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    /// Whose it is.
    pub flow: TcbKey,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// What its packet acknowledges.
    pub ack: u32,
    /// The window in it.
    pub window: u16,
    /// The client's timestamp in it.
    pub tsval: Option<u32>,
    /// Whether the client sends no more behind it.
    pub ends: bool,
    /// What a dispatcher is to be asked about the request that it begins, if that is why it waits.
    pub asks: Option<AnswerKey>,
    /// Whether it is to come again from here. Else whoever has sent it sends it again.
    pub comes_again: bool,
    /// Whether it waits only for an acknowledgement of what its client has been sent.
    pub unacknowledged: bool,
    /// At least one.
    pub bytes: Vec<u8>,
}

/// The reader's end.
pub struct EarlyRing(Ring<Early>);

impl DataServer {
    /// The reader's end. At most one may be in use.
    pub fn early(&self) -> Result<EarlyRing, Error> {
        Ok(EarlyRing(Ring::of("early", &self.early, read_record)?))
    }
}

impl EarlyRing {
    /// Waits until there are some, or for so long, in whole milliseconds.
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
