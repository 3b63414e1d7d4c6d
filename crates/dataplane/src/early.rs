//! What clients have sent too early, as the data server's program shows it.

use std::{sync::mpsc, time::Duration};

use baton_abi::{EARLY_ENDS, EARLY_STAMPED, TcbKey};
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes as _;

use crate::{Dataplane, Error, maps::map_error};

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
    /// At least one.
    pub bytes: Vec<u8>,
}

/// The reader's end.
pub struct EarlyRing {
    ring: RingBuffer<'static>,
    read: mpsc::Receiver<Early>,
}

impl Dataplane {
    /// The reader's end. At most one may be in use. On a data server only.
    pub fn early(&self) -> Result<EarlyRing, Error> {
        let map = self.programs().maps.early.as_ref();
        let map = map.ok_or_else(|| map_error("early", "exists on a data server only"))?;
        let failed = |error| map_error("early", error);
        let (sender, read) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |record| {
                // The receiver lives as long as this closure: both are in `EarlyRing`.
                let _ = read_record(record).map(|early| sender.send(early));
                0
            })
            .map_err(failed)?;
        Ok(EarlyRing {
            ring: builder.build().map_err(failed)?,
            read,
        })
    }
}

impl EarlyRing {
    /// Waits until there are some, or for so long, in whole milliseconds.
    pub fn wait(&self, timeout: Duration) -> Result<impl Iterator<Item = Early> + '_, Error> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(map_error("early", error))
            }
            _ => Ok(self.read.try_iter()),
        }
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
        bytes: bytes.get(..record.bytes as usize)?.to_vec(),
    })
}
