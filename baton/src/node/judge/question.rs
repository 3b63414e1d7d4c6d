//! A request of which a dispatcher is asked, and what of its connection waits behind it.

use std::net::SocketAddr;

use baton_abi::AnswerKey;
use baton_core::rules::Request;
use baton_dataplane::{Lead, Punt};
use baton_wire::{Endpoint, Flow};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

/// What is asked, and what to do with the answer.
#[derive(Debug)]
pub struct Question {
    pub punt: Punt,
    /// What the verdict says of pool and route.
    pub lead: Option<Lead>,
    /// The pool's index, host, path, and client if that matters.
    pub key: AnswerKey,
}

/// A punted frame, read.
pub struct Reading {
    pub flow: Flow,
    /// If it begins one.
    pub request: Option<Request>,
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
        let end = |ip: std::net::Ipv4Addr, port| Endpoint::from(SocketAddr::from((ip, port)));
        let client = end(ip.header().source_addr(), tcp.source_port());
        let cluster = end(ip.header().destination_addr(), tcp.destination_port());
        Some(Self {
            flow: Flow::new(client, cluster).ok()?,
            request: Request::read(tcp.payload()),
        })
    }
}
