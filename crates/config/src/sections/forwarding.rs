//! `[forwarding]`: one I/O server has the cluster addresses and their TCP; programs on application nodes have
//! virtual sockets.

use std::num::{NonZeroU16, NonZeroU32};
use std::ops::Range;

use toml::Spanned;

use crate::reading::field::{parse, parse_list};
use crate::reading::problem::Problem;
use crate::reading::raw::RawForwarding;
use crate::reading::report::Report;
use crate::values::address::ClusterAddress;
use crate::values::number::in_range;
use crate::values::size;
use crate::values::words::words;

/// The settings that the I/O server and the application nodes have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// The transport of the channels.
    pub network: ForwardingNetwork,
    /// The port at the I/O server's own address where it accepts channels.
    pub port: NonZeroU16,
    /// The cluster addresses of the I/O server: at least one, each once. Programs connect from the first address of
    /// each IP version.
    pub addresses: Vec<ClusterAddress>,
    /// The bytes of a connection's receive buffer at either end (B_r), 4 KiB to 16 MiB.
    pub buffer: NonZeroU32,
    /// How one of several nodes that listen on a port is chosen for a client's connection.
    pub policy: ForwardingPolicy,
}

/// How one of several application nodes is chosen. A node's weight counts under all policies but round-robin, and a
/// weight of 0 under all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingPolicy {
    /// The nodes are chosen in turn.
    RoundRobin,
    /// The nodes are chosen in turn, each as often as its weight says.
    Weighted,
    /// The node is chosen that has the fewest open connections of the port in relation to its weight.
    LeastLoaded,
    /// The node is chosen by the client's address, with a Maglev table.
    Client,
}

// The words are those of a pool's policies.
words!(
    ForwardingPolicy,
    "policy",
    RoundRobin = "round-robin",
    Weighted = "weighted",
    LeastLoaded = "least-loaded",
    Client = "client",
);

/// The transport of channels between an I/O server and application nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardingNetwork {
    /// One TCP connection for each node: authenticated, not encrypted.
    Tcp,
    /// QUIC: authenticated and encrypted.
    Quic,
}

words!(ForwardingNetwork, "network =", Tcp = "tcp", Quic = "quic");

/// The default port. It is not registered, and no common daemon uses it.
const PORT: NonZeroU16 = NonZeroU16::new(7727).expect("it is not 0");
/// The default buffer in bytes, as in the paper's measurements.
const BUFFER: u64 = 128 << 10;
const SMALLEST: u64 = 4 << 10;
const LARGEST: u64 = 16 << 20;

/// The values of the section that could be read.
pub(crate) struct Draft {
    pub(crate) header: Range<usize>,
    pub(crate) addresses: Option<Vec<Spanned<ClusterAddress>>>,
    network: Option<ForwardingNetwork>,
    port: Option<NonZeroU16>,
    buffer: Option<u64>,
    policy: Option<ForwardingPolicy>,
}

impl Draft {
    pub(crate) fn parse(report: &mut Report<'_>, raw: Spanned<RawForwarding>) -> Self {
        let header = raw.span();
        let raw = raw.into_inner();
        let network = parse(report, "network", raw.network, |text| text.parse());
        let port = parse(report, "port", raw.port, |value| {
            in_range::<u16>("port", value, 1..=65535)
        });
        let buffer = parse(report, "buffer", raw.buffer, |text| buffer(&text));
        let policy = parse(report, "policy", raw.policy, |text| text.parse());
        let addresses = parse_list(report, "addresses", raw.addresses, |text| text.parse());
        let example = "addresses = [\"192.0.2.100\"], what clients know the cluster by";
        let addresses = addresses.required(report, header.clone(), || {
            Problem::new("[forwarding] has no addresses", format!("add {example}"))
        });
        if let Some(none) = addresses.as_ref().filter(|list| list.get_ref().is_empty()) {
            let what = "the I/O server has no cluster address";
            report.error(none.span(), Problem::new(what, format!("write {example}")));
        }
        Self {
            header,
            addresses: addresses.map(Spanned::into_inner),
            network: network.or(ForwardingNetwork::Tcp),
            port: port.or(PORT.get()).and_then(NonZeroU16::new),
            buffer: buffer.or(BUFFER),
            policy: policy.or(ForwardingPolicy::RoundRobin),
        }
    }

    /// The section, if all of it could be read.
    pub(crate) fn finish(self) -> Option<Forwarding> {
        let addresses = self.addresses?.into_iter().map(Spanned::into_inner);
        Some(Forwarding {
            network: self.network?,
            port: self.port?,
            addresses: addresses.collect(),
            buffer: NonZeroU32::new(u32::try_from(self.buffer?).ok()?)?,
            policy: self.policy?,
        })
    }
}

fn buffer(text: &str) -> Result<u64, Problem> {
    let bytes = size::bytes("buffer", text)?;
    if (SMALLEST..=LARGEST).contains(&bytes) {
        return Ok(bytes);
    }
    Err(Problem::new(
        format!("buffer = \"{}\" is out of range", text.escape_debug()),
        "choose from \"4KiB\" to \"16MiB\"; each connection may fill one at either end",
    ))
}
