//! QUERY and REPLY: a data server's daemon asks the dispatcher on another node.

use std::time::Duration;

use baton_abi::{LccpQuery, LccpReply, QUERY_HOST_BYTES, QUERY_PATH_BYTES};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{Address, Flow};

/// A question to the dispatcher: which data server is to serve this request?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    flow: Flow,
    number: u64,
    pool: u64,
    host: Vec<u8>,
    path: Vec<u8>,
}

impl Query {
    /// A question about a request of `flow`. `number` tells the asker's questions apart, and `pool` is the id of the
    /// pool whose members can serve the request. A host or path that is longer than a message can hold is cut.
    pub fn new(flow: Flow, number: u64, pool: u64, host: &[u8], path: &[u8]) -> Self {
        let host = &host[..host.len().min(QUERY_HOST_BYTES as usize)];
        let path = &path[..path.len().min(QUERY_PATH_BYTES as usize)];
        Self {
            flow,
            number,
            pool,
            host: host.to_owned(),
            path: path.to_owned(),
        }
    }

    /// The connection of the request.
    pub const fn flow(&self) -> Flow {
        self.flow
    }

    /// The question's number.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The id of the pool.
    pub const fn pool(&self) -> u64 {
        self.pool
    }

    /// The path that is asked for.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// The body, for which `LCCP_MAX_BODY` has room.
    pub(crate) fn body(&self) -> Vec<u8> {
        let head = LccpQuery {
            be_number: self.number.to_be(),
            be_pool: self.pool.to_be(),
            // No truncation: both lengths are within the limits above, which fit 16 bits.
            be_host_bytes: (self.host.len() as u16).to_be(),
            be_path_bytes: (self.path.len() as u16).to_be(),
            reserved: 0,
        };
        [head.as_bytes(), &self.host, &self.path].concat()
    }

    /// Reads a body. Returns `None` if it is shorter than it says, or if a length is above its limit.
    pub(crate) fn read(flow: Flow, body: &[u8]) -> Option<Self> {
        let (head, rest) = LccpQuery::read_from_prefix(body).ok()?;
        let host = usize::from(u16::from_be(head.be_host_bytes));
        let path = usize::from(u16::from_be(head.be_path_bytes));
        if host > QUERY_HOST_BYTES as usize || path > QUERY_PATH_BYTES as usize {
            return None;
        }
        let (host, rest) = rest.split_at_checked(host)?;
        Some(Self {
            flow,
            number: u64::from_be(head.be_number),
            pool: u64::from_be(head.be_pool),
            host: host.to_owned(),
            path: rest.get(..path)?.to_owned(),
        })
    }
}

/// The dispatcher's answer: which data server is to serve the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The flow of the question.
    pub flow: Flow,
    /// The number of the question.
    pub number: u64,
    /// The data server; `None`: the dispatcher knows none.
    pub server: Option<Address>,
    /// How long the answer is valid for requests that are alike, in milliseconds.
    pub lifetime_ms: u32,
}

impl Reply {
    /// How long the answer is valid.
    pub const fn lifetime(&self) -> Duration {
        Duration::from_millis(self.lifetime_ms as u64)
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let reply = LccpReply {
            be_number: self.number.to_be(),
            be_lifetime_ms: self.lifetime_ms.to_be(),
            reserved: 0,
            server: self.server.map_or([0; 16], Address::octets),
        };
        reply.as_bytes().to_vec()
    }

    /// Reads a body. Returns `None` if it is too short.
    pub(crate) fn read(flow: Flow, body: &[u8]) -> Option<Self> {
        let (reply, _) = LccpReply::read_from_prefix(body).ok()?;
        Some(Self {
            flow,
            number: u64::from_be(reply.be_number),
            server: (reply.server != [0; 16]).then(|| Address::from_octets(reply.server)),
            lifetime_ms: u32::from_be(reply.be_lifetime_ms),
        })
    }
}
