//! A ring in which a program shows something to user space, and the frames in the ring of the connection server's
//! program.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::mpsc,
    time::Duration,
};

use baton_abi::HeldFrame;
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use zerocopy::FromBytes as _;

use crate::{Error, clock::coarse_clock, maps::map_error};

/// A frame that lies in the ring longer than this is of no use: its client has sent it again, or is gone.
const TOO_OLD: Duration = Duration::from_secs(1);

/// The reader's end of a ring. At most one may be in use.
pub(crate) struct Ring<T: Send + 'static> {
    name: &'static str,
    ring: RingBuffer<'static>,
    read: mpsc::Receiver<T>,
    ready: OwnedFd,
}

impl<T: Send + 'static> Ring<T> {
    /// Opens the reader's end. Records that `read_record` does not understand are left out.
    pub fn of(
        name: &'static str,
        map: &MapHandle,
        read_record: fn(&[u8]) -> Option<T>,
    ) -> Result<Self, Error> {
        let (sender, read) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(map, move |record| {
                // The receiver lives as long as this closure: both are in `Ring`.
                let _ = read_record(record).map(|one| sender.send(one));
                0
            })
            .map_err(|error| map_error(name, error))?;
        let ring = builder.build().map_err(|error| map_error(name, error))?;
        let ready = map.as_fd().try_clone_to_owned();
        Ok(Self {
            name,
            ring,
            read,
            ready: ready.map_err(|error| map_error(name, error))?,
        })
    }

    /// Waits until there are records, or for this long, in whole milliseconds. They are returned in the order in which
    /// they came.
    pub fn wait(&self, timeout: Duration) -> Result<impl Iterator<Item = T> + '_, Error> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(map_error(self.name, error))
            }
            _ => Ok(self.read.try_iter()),
        }
    }
}

/// The descriptor is readable when the ring is not empty.
impl<T: Send + 'static> AsFd for Ring<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// A frame that waits.
pub(crate) struct Held {
    /// Index of the interface that it came to.
    pub interface: u32,
    /// The frame, from its Ethernet header on.
    pub frame: Vec<u8>,
}

pub(crate) fn read_held(record: &[u8]) -> Option<Held> {
    let (record, frame) = HeldFrame::read_from_prefix(record).ok()?;
    let age = coarse_clock().saturating_sub(record.time);
    if u128::from(age) > TOO_OLD.as_nanos() {
        return None;
    }
    Some(Held {
        interface: record.interface,
        frame: frame.get(..record.bytes as usize)?.to_vec(),
    })
}
