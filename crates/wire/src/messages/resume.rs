//! RESUME and READY: the rest of a response whose data server died comes from another one.

use baton_abi::{
    KEPT_BYTES, LCCP_OUTCOME_BEGUN, LCCP_OUTCOME_COMPLETE, LCCP_OUTCOME_DIFFERS, LCCP_OUTCOME_FULL,
    LCCP_OUTCOME_LENGTH, LCCP_OUTCOME_NO_LENGTH, LCCP_OUTCOME_READY, LCCP_OUTCOME_STATUS,
    LCCP_OUTCOME_UNREACHABLE, LccpReady, LccpResume,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{Error, Flow, HeadDigest};

/// How far a response has come, and what is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// TCP sequence number of its first byte.
    pub start: u32,
    /// The highest one that the client is known to have acknowledged.
    pub acknowledged: u32,
    /// What tells its head from others; `None`: not known.
    pub digest: Option<HeadDigest>,
    /// Of all of it, head and body, in bytes; `None`: not known.
    pub length: Option<u64>,
}

impl Progress {
    /// How many bytes of it the client has at least.
    pub const fn had(&self) -> u32 {
        self.acknowledged.wrapping_sub(self.start)
    }
}

/// Ask your server for the same, and have ready what the client does not have yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    flow: Flow,
    number: u64,
    progress: Progress,
    request: Vec<u8>,
}

impl Resume {
    /// The longest request, bytes.
    pub const LONGEST: usize = KEPT_BYTES as usize;

    /// The order of this number about a response to the flow's client, who asked for it by `request`.
    ///
    /// # Errors
    /// [`Error::RequestTooLong`].
    pub fn new(
        flow: Flow,
        number: u64,
        progress: Progress,
        request: Vec<u8>,
    ) -> Result<Self, Error> {
        if request.len() > Self::LONGEST {
            return Err(Error::RequestTooLong {
                bytes: request.len(),
            });
        }
        Ok(Self {
            flow,
            number,
            progress,
            request,
        })
    }

    /// Whose response it is.
    pub const fn flow(&self) -> Flow {
        self.flow
    }

    /// The order's number.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// How far the response has come.
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// The request, as the client sent it.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let head = LccpResume {
            be_number: self.number.to_be(),
            be_digest: value(self.progress.digest),
            be_length: self.progress.length.unwrap_or(0).to_be(),
            be_response_start: self.progress.start.to_be(),
            be_acknowledged: self.progress.acknowledged.to_be(),
            be_request_bytes: (self.request.len() as u16).to_be(), // at most LONGEST
            be_unseen: self.progress.digest.map_or(0, HeadDigest::unseen).to_be(),
            reserved_word: 0,
        };
        [head.as_bytes(), &self.request].concat()
    }

    /// `None` if the body is shorter than it says, or longer than it may be.
    pub(crate) fn read(flow: Flow, body: &[u8]) -> Option<Self> {
        let (head, rest) = LccpResume::read_from_prefix(body).ok()?;
        let request = rest.get(..usize::from(u16::from_be(head.be_request_bytes)))?;
        let progress = Progress {
            start: u32::from_be(head.be_response_start),
            acknowledged: u32::from_be(head.be_acknowledged),
            digest: HeadDigest::read(head.be_digest, head.be_unseen),
            length: known(head.be_length),
        };
        Self::new(
            flow,
            u64::from_be(head.be_number),
            progress,
            request.to_vec(),
        )
        .ok()
    }
}

fn value(digest: Option<HeadDigest>) -> u64 {
    digest.map_or(0, HeadDigest::value).to_be()
}

fn known(be_value: u64) -> Option<u64> {
    Some(u64::from_be(be_value)).filter(|value| *value != 0)
}

/// What has become of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The order's.
    pub flow: Flow,
    /// The order's.
    pub number: u64,
    /// What.
    pub outcome: Outcome,
    /// What tells the head of the response that is here from others, if there is one: all of it is known.
    pub digest: Option<HeadDigest>,
    /// Of all of it, head and body, in bytes.
    pub length: Option<u64>,
}

/// What has become of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The response is here, and waits for its connection.
    Ready,
    /// And the connection has come.
    Begun,
    /// The client has all of the response already.
    Complete,
    /// The server here does not answer.
    Unreachable,
    /// It answers with a status whose content is not known to be the same.
    Status,
    /// It does not say how long its answer is.
    NoLength,
    /// Its answer is shorter than what the client has, or 4 GiB and longer.
    Length,
    /// Its answer is known to be another one.
    Differs,
    /// Too many responses are resumed from here, or this version does not know why not.
    Full,
}

impl Outcome {
    /// Its number in a message (`enum lccp_outcome`).
    pub const fn number(self) -> u32 {
        match self {
            Self::Ready => LCCP_OUTCOME_READY,
            Self::Begun => LCCP_OUTCOME_BEGUN,
            Self::Complete => LCCP_OUTCOME_COMPLETE,
            Self::Unreachable => LCCP_OUTCOME_UNREACHABLE,
            Self::Status => LCCP_OUTCOME_STATUS,
            Self::NoLength => LCCP_OUTCOME_NO_LENGTH,
            Self::Length => LCCP_OUTCOME_LENGTH,
            Self::Differs => LCCP_OUTCOME_DIFFERS,
            Self::Full => LCCP_OUTCOME_FULL,
        }
    }

    const fn from_number(number: u32) -> Self {
        match number {
            LCCP_OUTCOME_READY => Self::Ready,
            LCCP_OUTCOME_BEGUN => Self::Begun,
            LCCP_OUTCOME_COMPLETE => Self::Complete,
            LCCP_OUTCOME_UNREACHABLE => Self::Unreachable,
            LCCP_OUTCOME_STATUS => Self::Status,
            LCCP_OUTCOME_NO_LENGTH => Self::NoLength,
            LCCP_OUTCOME_LENGTH => Self::Length,
            LCCP_OUTCOME_DIFFERS => Self::Differs,
            _ => Self::Full,
        }
    }
}

impl Ready {
    pub(crate) fn body(&self) -> Vec<u8> {
        let ready = LccpReady {
            be_number: self.number.to_be(),
            be_digest: value(self.digest),
            be_length: self.length.unwrap_or(0).to_be(),
            be_outcome: self.outcome.number().to_be(),
            reserved: 0,
        };
        ready.as_bytes().to_vec()
    }

    /// `None` if the body is too short.
    pub(crate) fn read(flow: Flow, body: &[u8]) -> Option<Self> {
        let (ready, _) = LccpReady::read_from_prefix(body).ok()?;
        Some(Self {
            flow,
            number: u64::from_be(ready.be_number),
            outcome: Outcome::from_number(u32::from_be(ready.be_outcome)),
            digest: HeadDigest::read(ready.be_digest, 0),
            length: known(ready.be_length),
        })
    }
}
