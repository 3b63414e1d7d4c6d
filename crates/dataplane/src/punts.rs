//! Punts: frames that the connection server's program hands to user space, and their way back through the
//! same program with a verdict, so that there is one way for a packet and not two.

use std::{
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use baton_abi::{
    Answer, AnswerKey, NO_DATA_SERVER, NO_POOL, Pool, ROUTE_NUMBER_SHIFT, ROUTE_RESUME,
    VERDICT_MARK, Verdict,
};
use libbpf_rs::MapHandle;
use zerocopy::IntoBytes as _;

use crate::{
    Dataplane, Error,
    again::{Again, Resumed},
    clock::coarse_after,
    maps::{element, map_error, only_on_cs, update},
    ring::Ring,
};

/// A frame that user space is shown: to be judged, or to be let go later.
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
    ring: Ring,
    again: Again,
    judge: MapHandle,
    answers: MapHandle,
    resting: MapHandle,
    pools: MapHandle,
}

impl Dataplane {
    /// The reader's end of the punts of a connection server. At most one may be in use.
    pub fn punts(&self) -> Result<Punts, Error> {
        let maps = &self.programs().maps;
        let shared = |name, map| {
            MapHandle::try_from(only_on_cs(name, map)?).map_err(|error| map_error(name, error))
        };
        Ok(Punts {
            ring: Ring::of("punts", only_on_cs("punts", &maps.punts)?)?,
            again: self.again()?,
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
        self.ring.wait(timeout)
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
        self.again
            .run(&punt.frame, punt.interface, verdict.as_bytes())
    }
}

/// Readable when there are some.
impl AsFd for Punts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
