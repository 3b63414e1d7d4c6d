//! Punts: frames that the connection server's program hands to user space, and their way back through the
//! same program with a verdict, so that there is one way for a packet and not two.

use std::{
    num::NonZeroU16,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use baton_abi::{
    Answer, AnswerKey, LCCP_TCB_PIPELINED, NO_DATA_SERVER, NO_POOL, Pool, ROUTE_NUMBER_SHIFT,
    ROUTE_RESUME, TCB_WAITING, Tcb, TcbKey, VERDICT_ASK, VERDICT_BEHIND, VERDICT_CARRIED,
    VERDICT_CHUNKED, VERDICT_CUT, VERDICT_ENDLESS, VERDICT_MARK, VERDICT_READ, VERDICT_REFUSED,
    VERDICT_UNJUDGED, Verdict,
};
use libbpf_rs::{MapCore as _, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    Dataplane, Error,
    again::{Again, Resumed},
    clock::coarse_after,
    hold::passes_on,
    maps::{again_on_cs, element, forget, lookup, only_on_cs, update},
    ring::{Ring, read_punt},
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
    /// Whether a data server's answer has brought it back: it can be judged, but its Ethernet header does not say where
    /// its client is.
    pub is_carried: bool,
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
        body: u64,
    },
    /// With its chunked body, which begins after so many bytes of head.
    Chunked(u32),
    /// Nobody can say, after so many bytes of head.
    Endless(u32),
}

/// The reader's end. Whoever has it must [`Punts::give_sign`] again and again, or is not asked.
pub struct Punts {
    ring: Ring<Punt>,
    again: Again,
    judge: MapHandle,
    answers: MapHandle,
    resting: MapHandle,
    pools: MapHandle,
    tcbs: MapHandle,
    hold: MapHandle,
    flows: MapHandle,
}

impl Dataplane {
    /// The reader's end of the punts of a connection server. At most one may be in use.
    pub fn punts(&self) -> Result<Punts, Error> {
        let maps = &self.programs().maps;
        Ok(Punts {
            ring: Ring::of("punts", only_on_cs("punts", &maps.punts)?, read_punt)?,
            again: self.again()?,
            judge: again_on_cs("judge", &maps.judge)?,
            answers: again_on_cs("answers", &maps.answers)?,
            resting: again_on_cs("resting", &maps.resting)?,
            pools: again_on_cs("pools", &maps.pools)?,
            tcbs: again_on_cs("tcbs", &maps.tcbs)?,
            hold: again_on_cs("hold", &maps.hold)?,
            flows: again_on_cs("punted_flows", &maps.punted_flows)?,
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
        let (head, body, framing) = match findings.length {
            None => (0, 0, 0),
            Some(RequestLength::Bytes { head, body }) => (head, body, 0),
            Some(RequestLength::Chunked(head)) => (head, 0, VERDICT_CHUNKED),
            Some(RequestLength::Endless(head)) => (head, 0, VERDICT_ENDLESS),
        };
        let cut = if findings.is_cut { VERDICT_CUT } else { 0 };
        let verdict = Verdict {
            mark: VERDICT_MARK,
            // Numbers that C keeps in 16 bits.
            pool: lead.map_or(NO_POOL as u16, |lead| lead.pool),
            route: lead.map_or(0, Lead::upper_half),
            owner: owner.unwrap_or(NO_DATA_SERVER as u16),
            flags: (cut | framing) as u16,
            path: [path as u32, (path >> 32) as u32],
            head,
            body: [body as u32, (body >> 32) as u32],
        };
        self.run(punt, &verdict)
    }

    /// Runs the frame through the program once more, which now answers that it is no request, and ends its
    /// connection.
    pub fn refuse(&self, punt: &Punt) -> Result<Resumed, Error> {
        self.run_with(punt, VERDICT_REFUSED)
    }

    /// Runs a frame through the program that follows one that was judged, and is not shown here again.
    pub fn follow(&self, punt: &Punt) -> Result<Resumed, Error> {
        self.run_with(punt, VERDICT_BEHIND)
    }

    /// Runs a frame of a head through the program that was judged, and maybe got lost behind it: if it is of the current
    /// request, it is known to be as it was.
    pub fn repeat(&self, punt: &Punt) -> Result<Resumed, Error> {
        self.run_with(punt, VERDICT_READ)
    }

    /// Has the owner of a frame's connection asked whether all before it has come there. Its answer, a message, is for the
    /// daemon. The frame goes to no server.
    pub fn ask(&self, punt: &Punt) -> Result<Resumed, Error> {
        self.run_with(punt, VERDICT_ASK)
    }

    /// Whether a connection has an entry, and so an owner.
    pub fn has_owner(&self, key: &TcbKey) -> Result<bool, Error> {
        Ok(lookup::<_, Tcb>("tcbs", &self.tcbs, key)?.is_some())
    }

    /// Whether a connection has an entry whose current request, or an earlier one, begins at this sequence number. Not if
    /// that was taken back, for no server has it: then its client sends it again, and it begins once more.
    pub fn has_begun(&self, key: &TcbKey, seq: u32) -> Result<bool, Error> {
        let tcb = lookup::<_, Tcb>("tcbs", &self.tcbs, key)?;
        Ok(tcb.is_some_and(|tcb| Begun::at(seq, &tcb) != Begun::Not))
    }

    /// Whether a request that begins at this sequence number has surely come to its server: some of its response was
    /// acknowledged, or its connection is over.
    pub fn is_settled(&self, key: &TcbKey, seq: u32) -> Result<bool, Error> {
        let Some(tcb) = lookup::<_, Tcb>("tcbs", &self.tcbs, key)? else {
            return Ok(true);
        };
        // An acknowledgement may be about a request before that is not answered yet.
        if u32::from(tcb.options) & LCCP_TCB_PIPELINED != 0 {
            return Ok(false);
        }
        let waits = u32::from(tcb.state) & TCB_WAITING != 0;
        Ok(match Begun::at(seq, &tcb) {
            Begun::Not => false,
            Begun::Current => !waits,
            Begun::Earlier => true,
        })
    }

    /// Nothing that was shown earlier is here any more: what still comes of new connections whose first request was shown
    /// does not wait for that. No other node has them, so unless they begin anew their clients hear that they have ended.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn forget_flows(&self) -> Result<(), Error> {
        let keys: Vec<_> = self.flows.keys().collect();
        for key in keys {
            forget("punted_flows", &self.flows, key.as_slice())?;
        }
        Ok(())
    }

    /// Whether another connection server has taken over, and all that clients send goes on to it.
    pub fn are_passed_on(&self) -> Result<bool, Error> {
        passes_on(&self.hold)
    }

    /// Runs a frame through the program as if it had just come.
    pub fn let_go(&self, punt: &Punt) -> Result<Resumed, Error> {
        if punt.is_carried {
            return self.run_with(punt, VERDICT_UNJUDGED);
        }
        self.again.run(&punt.frame, punt.interface, &[])
    }

    /// With a verdict that says this, and not where the frame goes.
    fn run_with(&self, punt: &Punt, flag: u32) -> Result<Resumed, Error> {
        let verdict = Verdict {
            mark: VERDICT_MARK,
            // Numbers that C keeps in 16 bits.
            pool: NO_POOL as u16,
            owner: NO_DATA_SERVER as u16,
            flags: flag as u16,
            ..Verdict::default()
        };
        self.run(punt, &verdict)
    }

    fn run(&self, punt: &Punt, verdict: &Verdict) -> Result<Resumed, Error> {
        let carried = if punt.is_carried { VERDICT_CARRIED } else { 0 };
        let verdict = Verdict {
            flags: verdict.flags | carried as u16,
            ..*verdict
        };
        self.again
            .run(&punt.frame, punt.interface, verdict.as_bytes())
    }
}

/// What an entry says of a request.
#[derive(PartialEq, Eq)]
enum Begun {
    /// None has, or nothing of it was delivered, so that the next one begins there.
    Not,
    Current,
    Earlier,
}

impl Begun {
    /// Of one that begins at this sequence number.
    fn at(seq: u32, tcb: &Tcb) -> Self {
        let was_taken_back = tcb.head == 0 && tcb.next_request == tcb.request_seq;
        match tcb.request_seq.wrapping_sub(seq).cast_signed() {
            0 if !was_taken_back => Self::Current,
            1.. => Self::Earlier,
            _ => Self::Not,
        }
    }
}

/// Readable when there are some.
impl AsFd for Punts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
