//! The beginnings of responses that could be resumed, as the data server's egress program has seen them.

use std::{
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use baton_abi::{KeptRequest, Pool, TcbKey};
use libbpf_rs::MapHandle;
use zerocopy::FromBytes as _;

use crate::{
    DataServer, Dataplane, Error, Options,
    loading::{attach, everywhere},
    maps::{again, element, lookup},
    ring::Ring,
};

/// How a response begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenHead {
    /// The connection of the response.
    pub flow: TcbKey,
    /// Sequence number of the response's first byte.
    pub response_start: u32,
    /// Which response it is of those that this data server began on the connection, from 1 on, modulo 256.
    pub number: u8,
    /// The response's first bytes: at most `HEAD_BYTES` of them, and only those in its first packet.
    pub text: Vec<u8>,
}

/// The reader's end of the ring `seen_heads`, and the maps of kept requests and pools.
pub struct Heads {
    ring: Ring<SeenHead>,
    kept: MapHandle,
    pools: MapHandle,
}

impl DataServer {
    /// Opens the reader's end of the ring `seen_heads`. At most one may be in use.
    pub fn heads(&self) -> Result<Heads, Error> {
        Ok(Heads {
            ring: Ring::of("seen_heads", &self.seen_heads, read_record)?,
            kept: again("kept_requests", &self.routing.kept_requests)?,
            pools: again("pools", &self.routing.pools)?,
        })
    }
}

impl Dataplane {
    /// Makes the program follow the responses that leave by these interfaces, or no longer follow any. If a
    /// connection's responses leave by another way, nobody knows where they end, so the connection does not move.
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
        if let (true, Some(server)) = (self.head_links.is_empty(), self.as_data_server()) {
            self.head_links = everywhere::attach("head", interfaces, pins, |interface, pins| {
                attach::attach_head(&server.egress, interface, pins)
            })?;
        }
        Ok(())
    }
}

impl Heads {
    /// Takes all beginnings of responses that are in the ring.
    pub fn take(&mut self) -> Result<impl Iterator<Item = SeenHead> + '_, Error> {
        self.ring.wait(Duration::ZERO)
    }

    /// The connection's request that this data server keeps, if the response to it begins at `response_start`.
    pub fn request_of(
        &self,
        flow: &TcbKey,
        response_start: u32,
    ) -> Result<Option<KeptRequest>, Error> {
        let kept: Option<KeptRequest> = lookup("kept_requests", &self.kept, flow)?;
        Ok(kept.filter(|kept| kept.response_start == response_start))
    }

    /// The number by which all nodes know the pool with this index: the lower half of its id.
    pub fn pool_id(&self, index: u16) -> Result<u32, Error> {
        let pool: Pool = element("pools", &self.pools, index.into())?;
        Ok(pool.id as u32) // the lower half
    }
}

/// The descriptor is readable when the ring is not empty.
impl AsFd for Heads {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
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
