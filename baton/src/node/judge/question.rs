//! A request of which a dispatcher is asked, and what of its connection waits behind it.

use std::net::SocketAddrV4;

use baton_abi::{AnswerKey, TcbKey};
use baton_core::rules::{BadRequest, Request};
use baton_dataplane::{Findings, Lead, Punt};
use baton_wire::{Endpoint, Flow};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

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
    /// And what its entry is under.
    pub key: TcbKey,
    /// Sequence number of the first byte of the payload,
    pub seq: u32,
    /// and that.
    pub payload: Vec<u8>,
    /// The request that it begins, if enough of it is here to tell.
    pub request: Result<Option<Request>, BadRequest>,
}

impl Reading {
    /// `None` if it is no TCP over IPv4, which the program punts nothing but.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let sliced = SlicedPacket::from_ethernet(frame).ok()?;
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
            (sliced.net, sliced.transport)
        else {
            return None;
        };
        let client = SocketAddrV4::new(ip.header().source_addr(), tcp.source_port());
        let cluster = SocketAddrV4::new(ip.header().destination_addr(), tcp.destination_port());
        Some(Self {
            flow: Flow::new(Endpoint::from(client), Endpoint::from(cluster)).ok()?,
            key: TcbKey::of(client, cluster),
            seq: tcp.sequence_number(),
            payload: tcp.payload().to_owned(),
            request: Request::read(tcp.payload()),
        })
    }
}
