//! Idle connections leave a data server that drains: found once a second, and each released with an empty ACK
//! in its client's name. A table of a million takes a while, so none of it is the daemon's own task's work.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::Result;
use baton_abi::IdleFlow;
use baton_dataplane::{Dataplane, Releaser, Resumed, Walked};
use baton_wire::Address;
use etherparse::{PacketBuilder, TcpHeader, TcpOptions};
use tracing::debug;

use super::{daemon::Daemon, egress::Egress, locked::locked, logged::logged, place::Place};

/// What finds and releases them, and what the last look found.
#[derive(Default)]
pub struct Releases {
    worker: Option<Arc<Worker>>,
    found: Arc<Mutex<Walked>>,
}

struct Worker {
    /// One at a time: a second look waits for the first.
    releaser: Mutex<Releaser>,
    egress: Egress,
    mac: [u8; 6],
}

impl Releases {
    /// Where connections come to this connection server.
    pub fn start(&mut self, dataplane: &Dataplane, place: &Place) -> Result<()> {
        self.worker = Some(Arc::new(Worker {
            releaser: Mutex::new(dataplane.releaser(place.link.index)?),
            egress: Egress::open(&place.links)?,
            mac: place.link.mac,
        }));
        Ok(())
    }

    /// What the last look found; nothing where nobody drains.
    pub fn found(&self) -> Walked {
        *locked(&self.found)
    }

    fn note(&self, walked: Walked) {
        *locked(&self.found) = walked;
    }
}

impl Daemon {
    /// Looks, if a data server drains. Returns at once.
    pub(super) fn release_idle(&self) {
        let (reader, after) = (self.reader.as_ref(), self.place.config.cs.release_after);
        if let (true, Some(reader), Some(quiet)) = (self.drain.is_on(), reader, after) {
            reader.let_idle_leave(quiet);
        }
        let Some(worker) = self.releases.worker.clone() else {
            return;
        };
        let nodes = self.membership.cluster().nodes();
        let draining: Vec<u16> = nodes
            .filter(|node| self.membership.is_draining(node.address))
            .filter_map(|node| self.tables.slot(node.address))
            .collect();
        if draining.is_empty() {
            self.releases.note(Walked::default());
            return;
        }
        // Without the key nothing is idle for long enough; what there is is counted all the same.
        let quiet = self.place.config.cs.release_after.unwrap_or(Duration::MAX);
        let found = self.releases.found.clone();
        tokio::task::spawn_blocking(move || {
            logged(worker.look(&draining, quiet).map(|walked| {
                *locked(&found) = walked;
            }));
        });
    }
}

impl Worker {
    fn look(&self, draining: &[u16], quiet: Duration) -> Result<Walked> {
        let releaser = locked(&self.releaser);
        let walked = releaser.walk(draining, quiet)?;
        while let Some(idle) = releaser.next()? {
            let Some(frame) = ack(&idle, self.mac) else {
                continue;
            };
            match releaser.release(&frame)? {
                Resumed::Leaves(message) => self.egress.send(&message)?,
                // No message of this kind is too long.
                Resumed::Done | Resumed::TooLong => {}
                Resumed::Dropped => debug!("an idle connection stays; a counter says why"),
            }
        }
        Ok(walked)
    }
}

/// What the client would say if it had anything to say: a frame, with room for timestamps, which only the
/// owner knows. `None` of a flow that is not IPv4.
pub(super) fn ack(idle: &IdleFlow, mac: [u8; 6]) -> Option<Vec<u8>> {
    const TIMESTAMPS: [u8; 12] = [1; 12];
    const TTL: u8 = 64;
    let IpAddr::V4(client) = Address::from_octets(idle.flow.client).ip() else {
        return None;
    };
    let cluster = Ipv4Addr::from(idle.flow.cluster.to_ne_bytes());
    let mut header = TcpHeader::new(
        u16::from_be(idle.flow.be_client_port),
        u16::from_be(idle.flow.be_cluster_port),
        idle.seq,
        0,
    );
    header.ack = true;
    header.acknowledgment_number = idle.ack;
    header.options = TcpOptions::try_from_slice(&TIMESTAMPS).ok()?;
    let builder = PacketBuilder::ethernet2(mac, mac)
        .ipv4(client.octets(), cluster.octets(), TTL)
        .tcp_header(header);
    let mut frame = Vec::with_capacity(builder.size(0));
    builder.write(&mut frame, &[]).ok()?;
    Some(frame)
}

#[cfg(test)]
mod tests {
    use baton_abi::TcbKey;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::*;

    #[test]
    fn the_ack_is_empty_and_where_the_connection_is() {
        let (client, cluster) = ("192.0.2.7:40000", "10.77.0.100:80");
        let address = |text: &str| text.parse::<std::net::SocketAddrV4>().ok();
        let (Some(client), Some(cluster)) = (address(client), address(cluster)) else {
            panic!("two addresses")
        };
        let idle = IdleFlow {
            flow: TcbKey::of(client, cluster),
            seq: 4_000_000_000,
            ack: 17,
        };
        let frame = ack(&idle, [2; 6]).unwrap_or_else(|| panic!("a flow of IPv4"));
        let Ok(SlicedPacket {
            net: Some(NetSlice::Ipv4(ip)),
            transport: Some(TransportSlice::Tcp(tcp)),
            ..
        }) = SlicedPacket::from_ethernet(&frame)
        else {
            panic!("no TCP: {frame:?}")
        };
        assert_eq!(ip.header().source_addr(), *client.ip());
        assert_eq!(ip.header().destination_addr(), *cluster.ip());
        assert_eq!((tcp.source_port(), tcp.destination_port()), (40000, 80));
        assert_eq!(tcp.sequence_number(), 4_000_000_000);
        assert_eq!(tcp.acknowledgment_number(), 17);
        assert!(tcp.ack() && !(tcp.syn() || tcp.fin() || tcp.rst() || tcp.psh()));
        assert!(tcp.payload().is_empty());
        assert_eq!(tcp.options(), [1; 12]);
    }
}
