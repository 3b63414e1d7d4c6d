//! Punts: frames that the connection server's program hands to user space, and their way back through the
//! same program with a verdict, so that there is one way for a packet and not two.

use std::{
    num::NonZeroU16,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use baton_abi::{
    Answer, AnswerKey, NO_DATA_SERVER, NO_POOL, Pool, ROUTE_NUMBER_SHIFT, ROUTE_RESUME, Tcb,
    TcbKey, VERDICT_ASK, VERDICT_BEHIND, VERDICT_CHUNKED, VERDICT_CUT, VERDICT_MARK, VERDICT_READ,
    VERDICT_REFUSED, Verdict,
};
use libbpf_rs::MapHandle;
use zerocopy::IntoBytes as _;

use crate::{
    Dataplane, Error,
    again::{Again, Resumed},
    clock::coarse_after,
    maps::{element, lookup, map_error, only_on_cs, update},
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
    /// Another request begins so many bytes into the payload: both are to be let go, one behind the other.
    pub divide_at: Option<NonZeroU16>,
    /// Whether nothing of it was looked at, because something of its connection was in user space before it.
    pub is_behind: bool,
    /// Whether it came by [`Punts::repeat`].
    pub is_repeat: bool,
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

/// What user space has found out of a request, for the program to go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The hash of its path in its one spelling, by which the program then chooses where it chooses by path.
    pub path: Option<u64>,
    /// Whether what decides where it goes is not all here.
    pub is_cut: bool,
    /// How long it is, if its head ends in another frame.
    pub length: Option<RequestLength>,
}

/// Where a request ends whose head is in several frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestLength {
    /// After so many bytes of head and of body.
    Bytes {
        /// Of head.
        head: u32,
        /// Of body.
        body: u32,
    },
    /// With its chunked body, which begins after so many bytes of head.
    Chunked(u32),
}

/// The reader's end. Whoever has it must [`Punts::give_sign`] again and again, or is not asked.
pub struct Punts {
    ring: Ring,
    again: Again,
    judge: MapHandle,
    answers: MapHandle,
    resting: MapHandle,
    pools: MapHandle,
    tcbs: MapHandle,
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
            tcbs: shared("tcbs", &maps.tcbs)?,
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
        self.resume_by(punt, lead, owner, Findings::default())
    }

    /// The same of a request of which more is known.
    pub fn resume_by(
        &self,
        punt: &Punt,
        lead: Option<Lead>,
        owner: Option<u16>,
        findings: Findings,
    ) -> Result<Resumed, Error> {
        let path = findings.path.unwrap_or(0);
        let (head, body, chunked) = match findings.length {
            None => (0, 0, 0),
            Some(RequestLength::Bytes { head, body }) => (head, body, 0),
            Some(RequestLength::Chunked(head)) => (head, 0, VERDICT_CHUNKED),
        };
        let cut = if findings.is_cut { VERDICT_CUT } else { 0 };
        let verdict = Verdict {
            mark: VERDICT_MARK,
            // Numbers that C keeps in 16 bits.
            pool: lead.map_or(NO_POOL as u16, |lead| lead.pool),
            route: lead.map_or(0, Lead::upper_half),
            owner: owner.unwrap_or(NO_DATA_SERVER as u16),
            flags: (cut | chunked) as u16,
            path: [path as u32, (path >> 32) as u32],
            bytes: head + body,
            head,
        };
        self.run(punt, &verdict)
    }

    /// Runs the frame through the program once more, which now answers that it is no request, and ends its
    /// connection.
    pub fn refuse(&self, punt: &Punt) -> Result<Resumed, Error> {
        let verdict = Verdict {
            mark: VERDICT_MARK,
            pool: NO_POOL as u16,
            owner: NO_DATA_SERVER as u16,
            flags: VERDICT_REFUSED as u16,
            ..Verdict::default()
        };
        self.run(punt, &verdict)
    }

    /// Runs a frame through the program that follows one that was judged, and is not shown here again.
    pub fn follow(&self, punt: &Punt) -> Result<Resumed, Error> {
        let verdict = Verdict {
            mark: VERDICT_MARK,
            pool: NO_POOL as u16,
            owner: NO_DATA_SERVER as u16,
            flags: VERDICT_BEHIND as u16,
            ..Verdict::default()
        };
        self.run(punt, &verdict)
    }

    /// Runs a frame of a head through the program that was judged, and maybe got lost behind it: if it is of the current
    /// request, it is known to be as it was.
    pub fn repeat(&self, punt: &Punt) -> Result<Resumed, Error> {
        let verdict = Verdict {
            mark: VERDICT_MARK,
            pool: NO_POOL as u16,
            owner: NO_DATA_SERVER as u16,
            flags: VERDICT_READ as u16,
            ..Verdict::default()
        };
        self.run(punt, &verdict)
    }

    /// Has the owner of a frame's connection asked whether all before it has come there. Its answer, a message, is for the
    /// daemon. The frame goes to no server.
    pub fn ask(&self, punt: &Punt) -> Result<Resumed, Error> {
        let verdict = Verdict {
            mark: VERDICT_MARK,
            pool: NO_POOL as u16,
            owner: NO_DATA_SERVER as u16,
            flags: VERDICT_ASK as u16,
            ..Verdict::default()
        };
        self.run(punt, &verdict)
    }

    /// Whether a connection has an entry, and so an owner.
    pub fn has_owner(&self, key: &TcbKey) -> Result<bool, Error> {
        Ok(lookup::<_, Tcb>("tcbs", &self.tcbs, key)?.is_some())
    }

    /// Runs a frame through the program as if it had just come.
    pub fn let_go(&self, punt: &Punt) -> Result<Resumed, Error> {
        self.again.run(&punt.frame, punt.interface, &[])
    }

    fn run(&self, punt: &Punt, verdict: &Verdict) -> Result<Resumed, Error> {
        let metadata = verdict.as_bytes();
        self.again.run(&punt.frame, punt.interface, metadata)
    }
}

/// Readable when there are some.
impl AsFd for Punts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
