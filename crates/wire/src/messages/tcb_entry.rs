//! A TCB entry on its way from one connection server's table to another's.

use std::num::NonZeroU16;

use baton_abi::{LCCP_TCB_SACK, LCCP_TCB_WSCALE, LccpTcbsEntry};

use super::numbered::byte;
use crate::{Address, Endpoint, ShortAddress, WindowScales};

/// The connection that an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntryKey {
    /// The client's end.
    pub client: Endpoint,
    /// The cluster address.
    pub cluster: ShortAddress,
    /// The port at the cluster address.
    pub port: u16,
}

/// What a connection server remembers about one connection, without values that mean something only in its own table:
/// data servers are named by address, pools and routes by id, and times by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcbEntry {
    /// The connection.
    pub key: EntryKey,
    /// The id of the pool that its first request was routed to.
    pub pool: u64,
    /// The id of the route that its first request took, if any.
    pub route: Option<u64>,
    /// The sequence number at which the request begins that it went to its owner with.
    pub request_seq: u32,
    /// The highest sequence number seen from the client, plus one.
    pub last_seq: u32,
    /// The highest acknowledgement seen.
    pub last_ack: u32,
    /// How long ago the last packet came, ticks of 2^30 ns.
    pub age: u32,
    /// The data server that has the connection.
    pub owner: ShortAddress,
    /// The data server that has the connection while its response moves; `None`: the response does not move.
    pub previous: Option<ShortAddress>,
    /// The largest segment that the client takes, bytes.
    pub mss: NonZeroU16,
    /// The window scales, if there are any.
    pub scales: Option<WindowScales>,
    /// Whether the client takes selective acknowledgements.
    pub sack: bool,
    /// Bits of `enum tcb_state`.
    pub state: u8,
    /// How often the request was sent on before it came to its owner, as `struct lccp_tcb` counts.
    pub attempt: u8,
}

impl From<&TcbEntry> for LccpTcbsEntry {
    fn from(entry: &TcbEntry) -> Self {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let scales = entry
            .scales
            .map_or((0, 0), |of| (of.client.shift(), of.cluster.shift()));
        Self {
            client: entry.key.client.address.octets(),
            cluster: entry.key.cluster.word(),
            be_client_port: entry.key.client.port.to_be(),
            be_cluster_port: entry.key.port.to_be(),
            be_pool: entry.pool.to_be(),
            be_route: entry.route.unwrap_or(0).to_be(),
            be_request_seq: entry.request_seq.to_be(),
            be_last_seq: entry.last_seq.to_be(),
            be_last_ack: entry.last_ack.to_be(),
            be_age: entry.age.to_be(),
            owner: entry.owner.word(),
            previous: entry.previous.map_or(0, ShortAddress::word),
            be_mss: entry.mss.get().to_be(),
            snd_wscale: scales.0,
            rcv_wscale: scales.1,
            options: flag(entry.sack, const { byte(LCCP_TCB_SACK) })
                | flag(entry.scales.is_some(), const { byte(LCCP_TCB_WSCALE) }),
            state: entry.state,
            attempt: entry.attempt,
            reserved: 0,
        }
    }
}

impl TcbEntry {
    /// Reads an entry. Returns `None` if its cluster address or its owner is missing, or if its MSS or a window scale
    /// is impossible.
    pub(crate) fn read(entry: &LccpTcbsEntry) -> Option<Self> {
        let has = |options: u8, option: u32| u32::from(options) & option != 0;
        let scales = WindowScales::told(entry.options, entry.snd_wscale, entry.rcv_wscale).ok()?;
        Some(Self {
            key: EntryKey {
                client: Endpoint {
                    address: Address::from_octets(entry.client),
                    port: u16::from_be(entry.be_client_port),
                },
                cluster: ShortAddress::from_word(entry.cluster)?,
                port: u16::from_be(entry.be_cluster_port),
            },
            pool: u64::from_be(entry.be_pool),
            route: Some(u64::from_be(entry.be_route)).filter(|route| *route != 0),
            request_seq: u32::from_be(entry.be_request_seq),
            last_seq: u32::from_be(entry.be_last_seq),
            last_ack: u32::from_be(entry.be_last_ack),
            age: u32::from_be(entry.be_age),
            owner: ShortAddress::from_word(entry.owner)?,
            previous: ShortAddress::from_word(entry.previous),
            mss: NonZeroU16::new(u16::from_be(entry.be_mss))?,
            scales,
            sack: has(entry.options, LCCP_TCB_SACK),
            state: entry.state,
            attempt: entry.attempt,
        })
    }
}
