//! How responses begin that could be resumed: what the data server's program at the way out has seen.

use std::{
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use baton_abi::TcbKey;
use zerocopy::FromBytes as _;

use crate::{Dataplane, Error, Options, attach, everywhere, maps::only_on_ds, ring::Ring};

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
pub struct Heads(Ring<SeenHead>);

impl Dataplane {
    /// The reader's end. At most one may be in use. On a data server only.
    pub fn heads(&self) -> Result<Heads, Error> {
        let map = only_on_ds("seen_heads", &self.programs().maps.seen_heads)?;
        Ok(Heads(Ring::of("seen_heads", map, read_record)?))
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
        self.0.wait(Duration::ZERO)
    }
}

/// Readable when there are some.
impl AsFd for Heads {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
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
