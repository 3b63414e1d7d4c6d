//! A request of which a dispatcher is asked, and what of its connection waits behind it.

use baton_abi::AnswerKey;
use baton_core::rules::{BadRequest, Request};
use baton_dataplane::{Findings, Lead, Punt};
use baton_net::client_frame::{BadFrame, Segment};
use baton_wire::Flow;

/// What is asked, and what to do with the answer.
#[derive(Debug)]
pub struct Question {
    pub punt: Punt,
    /// What the verdict says of pool and route.
    pub lead: Option<Lead>,
    /// And of the request.
    pub findings: Findings,
    /// The pool's index, host, path, and client if that matters.
    pub key: AnswerKey,
}

/// Of a request that is not here up to its target.
pub const CUT: Findings = Findings {
    path: None,
    is_cut: true,
    length: None,
};

/// A punted frame, read.
pub struct Reading {
    pub flow: Flow,
    /// Sequence number of the first byte of the payload,
    pub seq: u32,
    /// and that.
    pub payload: Vec<u8>,
    /// The request that it begins, if enough of it is here to tell.
    pub request: Result<Option<Request>, BadRequest>,
}

impl Reading {
    pub fn of(frame: &[u8]) -> Result<Self, BadFrame> {
        let segment = Segment::read(frame)?;
        Ok(Self {
            flow: segment.flow,
            seq: segment.seq,
            payload: segment.payload.to_owned(),
            request: Request::read(segment.payload),
        })
    }
}
