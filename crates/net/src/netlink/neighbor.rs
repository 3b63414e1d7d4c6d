//! The way to another node: the link, the source address and the next hop's MAC address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::TryStreamExt;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourState,
};
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteType, RouteVia,
};

use super::link::Link;
use super::{Netlink, all, failed, unless};
use crate::{Error, Result};

/// Where packets to an address go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hop {
    /// The packets go to this host itself.
    Local,
    /// The packets leave by an interface.
    Next(NextHop),
}

/// How packets reach another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The interface that packets leave by.
    pub link_index: u32,
    /// The MAC address of that interface.
    pub source_mac: [u8; 6],
    /// The MAC address of the host itself, or of the router on the way to it.
    pub mac: [u8; 6],
    /// The source address that this host uses.
    pub source: IpAddr,
    /// Whether there is a router on the way.
    pub routed: bool,
}

/// The time between two looks at the neighbor table while the kernel asks for the neighbor.
const LOOK: Duration = Duration::from_millis(10);

impl Netlink {
    /// The way to `address`, for packets that this host sends.
    ///
    /// An XDP program does not use the kernel's neighbor entries, so the kernel takes them for unused and lets them
    /// age. Therefore this also makes the kernel verify an entry that is not fresh. Call it again from time to time,
    /// and it notices a changed MAC address.
    ///
    /// # Errors
    /// [`Error::Unresolved`] if the next hop does not answer within `timeout`, which counts only time in which this
    /// process ran;
    /// [`Error::NotEthernet`];
    /// [`Error::System`], for instance when there is no route.
    pub async fn next_hop(&self, address: IpAddr, timeout: Duration) -> Result<Hop> {
        let route = self.route_to(address).await?;
        if matches!(route.header.kind, RouteType::Local) {
            return Ok(Hop::Local);
        }
        let way = Way::of(&route, address)?;
        let link = self.link_at(way.link_index).await?;
        let mac = self.resolve(&link, way.via, timeout).await?;
        Ok(Hop::Next(NextHop {
            link_index: link.index,
            source_mac: link.mac,
            mac,
            source: way.source,
            routed: way.via != address,
        }))
    }

    /// The index of the interface by which packets to `address` leave; `None` if the address is this host's.
    ///
    /// # Errors
    /// [`Error::System`], for instance if there is no route.
    pub async fn interface_to(&self, address: IpAddr) -> Result<Option<u32>> {
        let route = self.route_to(address).await?;
        if matches!(route.header.kind, RouteType::Local) {
            return Ok(None);
        }
        Ok(Some(Way::of(&route, address)?.link_index))
    }

    /// The index of the interface by which packets from `source` to `destination` leave, according to this host's rules
    /// and routes; `None` if the destination is this host's. A source that is not, or not yet, an address of this host
    /// is ignored.
    ///
    /// # Errors
    /// [`Error::System`], for instance if there is no route.
    pub async fn interface_from(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) -> Result<Option<u32>> {
        let request = RouteMessageBuilder::<Ipv4Addr>::new()
            .source_prefix(source, 32)
            .destination_prefix(destination, 32)
            .build();
        let route = match self.ask_route(request, destination.into()).await {
            // These are the errors of ip_route_output_key_hash_rcu in net/ipv4/route.c for a source that no interface
            // holds: the first in older kernels, the second in newer ones. If there is no route at all, the second try
            // reports that.
            Err(error) if matches!(error.errno(), Some(libc::EINVAL | libc::ENETUNREACH)) => {
                self.route_to(destination.into()).await?
            }
            asked => asked?,
        };
        if matches!(route.header.kind, RouteType::Local) {
            return Ok(None);
        }
        let leaves_by = |attribute: &RouteAttribute| match attribute {
            RouteAttribute::Oif(index) => Some(*index),
            _ => None,
        };
        let index = route.attributes.iter().find_map(leaves_by);
        index
            .map(Some)
            .ok_or_else(|| unreachable(format!("find a route from {source} to {destination}")))
    }

    async fn route_to(&self, address: IpAddr) -> Result<RouteMessage> {
        let request = match address {
            IpAddr::V4(v4) => RouteMessageBuilder::<Ipv4Addr>::new()
                .destination_prefix(v4, 32)
                .build(),
            IpAddr::V6(v6) => RouteMessageBuilder::<Ipv6Addr>::new()
                .destination_prefix(v6, 128)
                .build(),
        };
        self.ask_route(request, address).await
    }

    async fn ask_route(&self, request: RouteMessage, address: IpAddr) -> Result<RouteMessage> {
        let doing = || format!("find a route to {address}");
        let mut answer = Box::pin(self.handle.route().get(request).execute());
        answer
            .try_next()
            .await
            .map_err(failed(doing()))?
            .ok_or_else(|| unreachable(doing()))
    }

    async fn resolve(&self, link: &Link, address: IpAddr, timeout: Duration) -> Result<[u8; 6]> {
        // It counts looks instead of time: a process that did not run meanwhile has not waited.
        let mut looks = timeout.as_millis() / LOOK.as_millis();
        loop {
            let (state, mac) = self.neighbor(link, address).await?;
            if !is_fresh(state) {
                self.probe(link, address).await?;
            }
            if let Some(mac) = mac {
                return Ok(mac);
            }
            if looks == 0 {
                let interface = link.name.clone();
                return Err(Error::Unresolved {
                    address,
                    interface,
                    waited: timeout,
                });
            }
            looks -= 1;
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What the kernel knows about a neighbor: its state, and its MAC address if that is usable.
    async fn neighbor(
        &self,
        link: &Link,
        address: IpAddr,
    ) -> Result<(NeighbourState, Option<[u8; 6]>)> {
        let (family, wanted) = match address {
            IpAddr::V4(v4) => (AddressFamily::Inet, NeighbourAddress::Inet(v4)),
            IpAddr::V6(v6) => (AddressFamily::Inet6, NeighbourAddress::Inet6(v6)),
        };
        let request = self.handle.neighbours().get().set_address_family(family);
        let wanted = NeighbourAttribute::Destination(wanted);
        let listing = self.listing.lock().await;
        let entries = all("list the neighbors", request.execute()).await?;
        drop(listing);
        let entry = entries
            .into_iter()
            .find(|entry| entry.header.ifindex == link.index && entry.attributes.contains(&wanted));
        let Some(entry) = entry else {
            return Ok((NeighbourState::None, None));
        };
        let state = entry.header.state;
        let mac = entry
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
                _ => None,
            });
        Ok((state, mac.filter(|_| is_usable(state))))
    }

    /// Makes the kernel ask for a neighbor, or verify the entry that it has (NTF_USE, `neigh_add` in
    /// net/core/neighbour.c).
    async fn probe(&self, link: &Link, address: IpAddr) -> Result<()> {
        let request = self.handle.neighbours().add(link.index, address);
        let request = request
            .state(NeighbourState::None)
            .flags(NeighbourFlags::Use)
            .replace();
        let doing = format!("ask for the MAC address of {address} on {}", link.name);
        unless(
            request.execute().await.map_err(failed(doing)),
            &[libc::EEXIST],
        )
        .map(|_| ())
    }
}

/// Whether the kernel would neither ask for this neighbor nor verify it.
fn is_fresh(state: NeighbourState) -> bool {
    matches!(
        state,
        NeighbourState::Reachable
            | NeighbourState::Permanent
            | NeighbourState::Noarp
            | NeighbourState::Probe
            | NeighbourState::Delay
            | NeighbourState::Incomplete
    )
}

/// Whether the kernel itself would send to this MAC address (NUD_VALID of include/net/neighbour.h).
fn is_usable(state: NeighbourState) -> bool {
    matches!(
        state,
        NeighbourState::Reachable
            | NeighbourState::Permanent
            | NeighbourState::Noarp
            | NeighbourState::Probe
            | NeighbourState::Stale
            | NeighbourState::Delay
    )
}

/// What a route says about the way to an address.
struct Way {
    link_index: u32,
    /// The gateway, or the destination itself if it is on the link.
    via: IpAddr,
    source: IpAddr,
}

impl Way {
    fn of(route: &RouteMessage, destination: IpAddr) -> Result<Self> {
        let (mut link_index, mut via, mut source) = (None, destination, None);
        for attribute in &route.attributes {
            match attribute {
                RouteAttribute::Oif(index) => link_index = Some(*index),
                RouteAttribute::Gateway(address) => via = ip(address).unwrap_or(via),
                RouteAttribute::Via(RouteVia::Inet(v4)) => via = (*v4).into(),
                RouteAttribute::Via(RouteVia::Inet6(v6)) => via = (*v6).into(),
                RouteAttribute::PrefSource(address) => source = ip(address),
                _ => {}
            }
        }
        match (link_index, source) {
            (Some(link_index), Some(source)) => Ok(Self {
                link_index,
                via,
                source,
            }),
            _ => Err(unreachable(format!(
                "find a route with a source address to {destination}"
            ))),
        }
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some((*v4).into()),
        RouteAddress::Inet6(v6) => Some((*v6).into()),
        _ => None,
    }
}

fn unreachable(doing: String) -> Error {
    Error::System {
        doing,
        cause: std::io::Error::from_raw_os_error(libc::ENETUNREACH),
    }
}
