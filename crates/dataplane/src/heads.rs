//! How responses begin that could be resumed: what the data server's program at the way out has seen.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::mpsc,
    time::Duration,
};

use baton_abi::TcbKey;
use libbpf_rs::{RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes as _;

use crate::{Dataplane, Error, Options, attach, everywhere, maps::map_error};

/// How one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenHead {
    /// Whose it is.
    pub flow: TcbKey,
    /// Sequence number of its first byte.
    pub response_start: u32,
    /// Which response it is of those that this data server began on the connection, from 1 on, modulo 256.
    pub number: u8,
    /// Its first bytes, at most `HEAD_BYTES` of them and of its first packet.
    pub text: Vec<u8>,
}

/// The reader's end.
pub struct Heads {
    ring: RingBuffer<'static>,
    read: mpsc::Receiver<SeenHead>,
    ready: OwnedFd,
}

impl Dataplane {
    /// The reader's end. At most one may be in use. On a data server only.
    pub fn heads(&self) -> Result<Heads, Error> {
        let map = self.programs().maps.seen_heads.as_ref();
        let map = map.ok_or_else(|| map_error("seen_heads", "exists on a data server only"))?;
        let failed = |error| map_error("seen_heads", error);
        let (sender, read) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |record| {
                // The receiver lives as long as this closure: both are in `Heads`.
                let _ = read_record(record).map(|head| sender.send(head));
                0
            })
            .map_err(failed)?;
        let ready = map.as_fd().try_clone_to_owned();
        Ok(Heads {
            ring: builder.build().map_err(failed)?,
            read,
            ready: ready.map_err(|error| map_error("seen_heads", error))?,
        })
    }

    /// Has the program follow the responses that leave by these interfaces, or not any more. On a connection whose
    /// responses leave otherwise nobody knows where they end, so it does not move.
    pub fn follow_responses(
        &mut self,
        wanted: bool,
        interfaces: &[u32],
        options: &Options,
    ) -> Result<(), Error> {
        let pins = options.pins.as_ref();
        if !wanted {
            self.head_links.clear();
            let Some(pins) = pins else { return Ok(()) };
            pins.forget_links_elsewhere("head", &[])?;
            return pins.forget_link("head");
        }
        if let (true, Some(program)) = (self.head_links.is_empty(), &self.programs().head) {
            self.head_links = everywhere::attach("head", interfaces, pins, |interface, pins| {
                attach::attach_head(program, interface, pins)
            })?;
        }
        Ok(())
    }
}

impl Heads {
    /// All that there are.
    pub fn take(&mut self) -> Result<impl Iterator<Item = SeenHead> + '_, Error> {
        match self.ring.poll(Duration::ZERO) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(map_error("seen_heads", error))
            }
            _ => Ok(self.read.try_iter()),
        }
    }
}

/// Readable when there are some.
impl AsFd for Heads {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

fn read_record(record: &[u8]) -> Option<SeenHead> {
    let (record, _) = baton_abi::SeenHead::read_from_prefix(record).ok()?;
    Some(SeenHead {
        flow: record.flow,
        response_start: record.response_start,
        number: record.number as u8, // the program writes a byte
        text: record.text.get(..usize::from(record.bytes))?.to_vec(),
    })
}
