//! RESUME and READY: the rest of a response whose data server has died comes from another one.

use baton_abi::{
    KEPT_BYTES, LCCP_OUTCOME_BEGUN, LCCP_OUTCOME_COMPLETE, LCCP_OUTCOME_DIFFERS, LCCP_OUTCOME_FULL,
    LCCP_OUTCOME_LENGTH, LCCP_OUTCOME_NO_LENGTH, LCCP_OUTCOME_READY, LCCP_OUTCOME_STATUS,
    LCCP_OUTCOME_UNREACHABLE, LccpReady, LccpResume,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use super::numbered::numbered;
use crate::{Error, Flow, HeadDigest};

/// How far a response has come, and what is known about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// TCP sequence number of the response's first byte.
    pub start: u32,
    /// The highest sequence number that the client is known to have acknowledged.
    pub acknowledged: u32,
    /// The digest that tells its head from others; `None`: unknown.
    pub digest: Option<HeadDigest>,
    /// The length of head and body together, bytes; `None`: unknown.
    pub length: Option<u64>,
}

/// An order: ask your server for the same response, and keep ready what the client does not have yet.
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

    /// The order with this number, about a response to the client of the flow, which asked for it by `request`.
    ///
    /// # Errors
    /// [`Error::RequestTooLong`] if `request` is longer than [`Self::LONGEST`].
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

    /// The connection of the response.
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

    /// Reads a body. Returns `None` if it is shorter than it says, or longer than allowed.
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

/// The outcome of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The flow of the order.
    pub flow: Flow,
    /// The number of the order.
    pub number: u64,
    /// The outcome itself.
    pub outcome: Outcome,
    /// The digest of the response that is here, if there is one: it covers the whole head.
    pub digest: Option<HeadDigest>,
    /// The length of head and body together, bytes.
    pub length: Option<u64>,
}

numbered! {
    /// The outcome of an order (`enum lccp_outcome`).
    pub enum Outcome {
        /// The response is here, and waits for its connection.
        Ready = LCCP_OUTCOME_READY,
        /// The connection has come, and its response goes on.
        Begun = LCCP_OUTCOME_BEGUN,
        /// The client already has the whole response.
        Complete = LCCP_OUTCOME_COMPLETE,
        /// The server here does not answer.
        Unreachable = LCCP_OUTCOME_UNREACHABLE,
        /// The server answers with a status whose content is not known to be the same.
        Status = LCCP_OUTCOME_STATUS,
        /// The server does not say how long its answer is.
        NoLength = LCCP_OUTCOME_NO_LENGTH,
        /// The server's answer is shorter than what the client has, or 4 GiB or longer.
        Length = LCCP_OUTCOME_LENGTH,
        /// The server's answer is known to be a different response.
        Differs = LCCP_OUTCOME_DIFFERS,
        /// Too many responses are resumed from here, or the reason is one that this version does not know.
        Full = LCCP_OUTCOME_FULL,
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

    /// Reads a body. Returns `None` if it is too short.
    pub(crate) fn read(flow: Flow, body: &[u8]) -> Option<Self> {
        let (ready, _) = LccpReady::read_from_prefix(body).ok()?;
        Some(Self {
            flow,
            number: u64::from_be(ready.be_number),
            outcome: Outcome::from_number(u32::from_be(ready.be_outcome)).unwrap_or(Outcome::Full),
            digest: HeadDigest::read(ready.be_digest, 0),
            length: known(ready.be_length),
        })
    }
}
