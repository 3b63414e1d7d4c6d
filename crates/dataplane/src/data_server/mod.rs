//! The data server's programs and maps: nothing here exists on a node without that role.

pub mod answers;
pub mod door_tally;
pub mod early;
pub mod heads;
pub mod own_pools;
pub mod reading;
pub mod relay_answer;
pub mod responses;

use std::{net::Ipv4Addr, os::fd::OwnedFd, sync::Arc};

use baton_abi::{Ring, SenderKey, short_address};
use libbpf_rs::MapHandle;

use crate::{
    Error, Routing,
    maps::{CommonMaps, entries, update},
    routing::set_all,
};

/// The programs and maps of a data server.
pub struct DataServer {
    /// The tcx program at ingress.
    pub ingress: OwnedFd,
    /// The tcx program at egress, which follows responses.
    pub egress: OwnedFd,
    /// The program that keeps answers to the relay on this host.
    pub relay_answer: OwnedFd,
    /// The program that gives adopted connections their congestion window.
    pub window: OwnedFd,
    /// The program that passes frames of user space up to the kernel.
    pub pass_up: OwnedFd,
    pub(crate) peers: MapHandle,
    pub(crate) senders: MapHandle,
    pub(crate) receive_windows: MapHandle,
    pub(crate) rings: MapHandle,
    pub(crate) seen_heads: MapHandle,
    pub(crate) responses: MapHandle,
    pub(crate) doors: MapHandle,
    pub(crate) doors_begun: MapHandle,
    pub(crate) door_tallies: MapHandle,
    pub(crate) keeping: MapHandle,
    pub(crate) have_read: MapHandle,
    pub(crate) early: MapHandle,
    pub(crate) asking: MapHandle,
    pub(crate) routing: Arc<Routing>,
    pub(crate) common: Arc<CommonMaps>,
}

impl DataServer {
    /// Sets the way to a node, for messages of this data server. A default value says that there is no way.
    pub fn set_peer(&self, address: Ipv4Addr, way: &baton_abi::DataServer) -> Result<(), Error> {
        update("peers", &self.peers, &short_address(address), way)
    }

    /// The ways to all nodes that messages of this data server may go to.
    pub fn peers(&self) -> Result<Vec<baton_abi::DataServer>, Error> {
        Ok(entries::<u32, _>("peers", &self.peers)?
            .into_iter()
            .map(|(_, way)| way)
            .collect())
    }

    /// Makes these the connection servers on this data server's LAN, by MAC.
    pub fn set_senders(&self, senders: &[([u8; 6], Ipv4Addr)]) -> Result<(), Error> {
        let entries: Vec<_> = senders
            .iter()
            .map(|(mac, address)| {
                let key = SenderKey {
                    mac: *mac,
                    reserved: 0,
                };
                (key, short_address(*address))
            })
            .collect();
        set_all("senders", &self.senders, &entries)
    }

    /// Sets whom this data server asks next for connections of a service.
    pub fn set_ring(&self, service: u16, ring: &Ring) -> Result<(), Error> {
        update("rings", &self.rings, &u32::from(service), ring)
    }
}
