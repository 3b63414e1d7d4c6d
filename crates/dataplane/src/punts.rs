//! Punts: frames that the connection server's program hands to user space, and their way back through the
//! same program with a verdict, so that there is one way for a packet and not two.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::mpsc,
    time::Duration,
};

use baton_abi::{
    Answer, AnswerKey, NO_DATA_SERVER, NO_POOL, Pool, Punted, ROUTE_NUMBER_SHIFT, ROUTE_RESUME,
    VERDICT_MARK, Verdict,
};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{
    Dataplane, Error,
    clock::{coarse_after, coarse_clock},
    maps::{element, map_error, only_on_cs, update},
    sys,
};

/// `enum xdp_action` (`include/uapi/linux/bpf.h`).
pub(crate) const XDP_DROP: u32 = 1;
pub(crate) const XDP_PASS: u32 = 2;
pub(crate) const XDP_TX: u32 = 3;

/// What lies in the ring longer than this is of no use: its client has sent it again, or is gone.
const TOO_OLD: Duration = Duration::from_secs(1);

/// A frame that is to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Punt {
    /// Index of the interface that it came to.
    pub interface: u32,
    /// The service's number in the maps.
    pub service: u16,
    /// What the program would remember an answer of the dispatcher under, if one is to be asked.
    pub key: Option<AnswerKey>,
    /// Ethernet, IP and TCP headers, which the program has checked, and what follows.
    pub frame: Vec<u8>,
}

/// What came of a frame that ran through the program again.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumed {
    /// This frame is to leave by the interface that the punted one came to.
    Leaves(Vec<u8>),
    /// The kernel has it: its data server is this node, or behind another interface.
    Done,
    /// The program dropped it, and counted why.
    Dropped,
}

/// Where a request is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Index of the pool.
    pub pool: u16,
    /// Number of the route that leads there.
    pub route: u16,
    /// Whether the response may go on from another data server.
    pub resumes: bool,
}

impl Lead {
    /// What the table of routes says above the pool.
    pub fn upper_half(self) -> u16 {
        let flags = if self.resumes { ROUTE_RESUME } else { 0 };
        // Its upper 16 bits.
        self.route | (flags >> ROUTE_NUMBER_SHIFT) as u16
    }
}

/// The reader's end. Whoever has it must [`Punts::give_sign`] again and again, or is not asked.
pub struct Punts {
    ring: RingBuffer<'static>,
    read: mpsc::Receiver<Punt>,
    program: OwnedFd,
    judge: MapHandle,
    answers: MapHandle,
    resting: MapHandle,
    pools: MapHandle,
    ready: OwnedFd,
}

impl Dataplane {
    /// The reader's end of the punts of a connection server. At most one may be in use.
    pub fn punts(&self) -> Result<Punts, Error> {
        let maps = &self.programs().maps;
        let (sender, read) = mpsc::channel();
        let mut builder = RingBufferBuilder::new();
        builder
            .add(only_on_cs("punts", &maps.punts)?, move |record| {
                // The receiver lives as long as this closure: both are in `Punts`.
                let _ = read_record(record).map(|punt| sender.send(punt));
                0
            })
            .map_err(|error| map_error("punts", error))?;
        let ring = builder.build().map_err(|error| map_error("punts", error))?;
        let program = self.programs().cs.as_ref();
        let program =
            program.ok_or_else(|| map_error("punts", "exists on a connection server only"))?;
        let shared = |name, map| {
            MapHandle::try_from(only_on_cs(name, map)?).map_err(|error| map_error(name, error))
        };
        let ready = only_on_cs("punts", &maps.punts)?.as_fd();
        Ok(Punts {
            ready: (ready.try_clone_to_owned()).map_err(|error| map_error("punts", error))?,
            ring,
            read,
            program: (program.try_clone()).map_err(|error| map_error("punts", error))?,
            judge: shared("judge", &maps.judge)?,
            answers: shared("answers", &maps.answers)?,
            resting: shared("resting", &maps.resting)?,
            pools: shared("pools", &maps.pools)?,
        })
    }
}

impl Punts {
    /// Tells the program that somebody reads what it punts, now and for so long.
    pub fn give_sign(&self, time: Duration) -> Result<(), Error> {
        update("judge", &self.judge, &0u32, &coarse_after(time))
    }

    /// Tells the program that nobody does any more, from now on.
    pub fn withdraw(&self) -> Result<(), Error> {
        update("judge", &self.judge, &0u32, &0u64)
    }

    /// Waits until there are some, or for so long; in the order in which they came.
    pub fn wait(&self, timeout: Duration) -> Result<impl Iterator<Item = Punt> + '_, Error> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::Interrupted => {
                Err(map_error("punts", error))
            }
            _ => Ok(self.read.try_iter()),
        }
    }

    /// The pool at an index; all zero if there is none.
    pub fn pool(&self, index: u16) -> Result<Pool, Error> {
        element("pools", &self.pools, index.into())
    }

    /// Has the program choose this data server for requests of this name, for so long.
    pub fn remember(&self, key: &AnswerKey, owner: u16, lifetime: Duration) -> Result<(), Error> {
        let answer = Answer {
            until: coarse_after(lifetime),
            owner,
            ..Answer::default()
        };
        update("answers", &self.answers, key, &answer)
    }

    /// Has the program choose by itself for so long, and not ask about this service.
    pub fn rest(&self, service: u16, time: Duration) -> Result<(), Error> {
        let until = coarse_after(time);
        update("resting", &self.resting, &u32::from(service), &until)
    }

    /// Runs the frame through the program once more, which now sends it to this pool, or, without one, to
    /// the service's own; and there to this data server, or to one that it chooses.
    pub fn resume(
        &self,
        punt: &Punt,
        lead: Option<Lead>,
        owner: Option<u16>,
    ) -> Result<Resumed, Error> {
        let verdict = Verdict {
            mark: VERDICT_MARK,
            // Numbers that C keeps in 16 bits.
            pool: lead.map_or(NO_POOL as u16, |lead| lead.pool),
            route: lead.map_or(0, Lead::upper_half),
            owner: owner.unwrap_or(NO_DATA_SERVER as u16),
            reserved: 0,
        };
        let outcome = sys::run_on_arrival(
            self.program.as_fd(),
            verdict.as_bytes(),
            &punt.frame,
            punt.interface,
        )
        .map_err(failed)?;
        match outcome.verdict {
            XDP_DROP => Ok(Resumed::Dropped),
            XDP_TX => Ok(Resumed::Leaves(outcome.frame)),
            // A message for this very node: the program passes it up and changes nothing.
            XDP_PASS => self.run_live(&outcome.frame, punt.interface),
            // Out of another interface, which only the kernel knows now. The connection has its entry: this
            // is the same as if its client had sent the request again.
            _ => self.run_live(&punt.frame, punt.interface),
        }
    }

    fn run_live(&self, frame: &[u8], interface: u32) -> Result<Resumed, Error> {
        sys::run_live(self.program.as_fd(), frame, interface).map_err(failed)?;
        Ok(Resumed::Done)
    }
}

/// Readable when there are some.
impl AsFd for Punts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

fn failed(source: std::io::Error) -> Error {
    Error::Run {
        program: "cs",
        source,
    }
}

fn read_record(record: &[u8]) -> Option<Punt> {
    let (record, _) = Punted::read_from_prefix(record).ok()?;
    let age = coarse_clock().saturating_sub(record.time);
    if u128::from(age) > TOO_OLD.as_nanos() {
        return None;
    }
    Some(Punt {
        interface: record.interface,
        service: record.service,
        key: (record.key.hash != 0).then_some(record.key),
        frame: record.frame.get(..record.bytes.into())?.to_vec(),
    })
}
