//! What no well-behaved sender sends, thrown at nodes.

mod lccp;
mod tcp;

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Result, bail, ensure};
use baton_wire::{ClusterKey, LccpKey};
use serde::Deserialize;

use self::tcp::Sweep;
use crate::frames::{self, Frame, Way};
use crate::step::checks::counters::Moved;
use crate::world::World;

/// Sends hand-made frames from a host to the MAC address of a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throw {
    what: What,
    /// The node.
    at: String,
    /// Which host sends them, on the same LAN as the node.
    #[serde(default = "client")]
    from: String,
    /// Whose address the frames carry: of messages if not another node's which the node hears, else if not the
    /// client's.
    #[serde(rename = "as")]
    sender: Option<String>,
    /// The host whose keys the sender has got hold of: what it throws is made under the key which that one shares with
    /// the node, whoever's address it carries. If not given, under the right key.
    stolen: Option<String>,
    /// How many of each sort.
    #[serde(default = "hundred")]
    count: u32,
    /// A counter of the node that every frame which has come there moves. Some may be lost on the way,
    /// which is made allowance for; if it is more than a tenth, nothing was shown.
    counted: Option<String>,
}

/// Sorts of frames. LCCP goes to the node's own address, TCP to the cluster's.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// Every command under another cluster's key.
    Forged,
    /// Heartbeats under another cluster's key, which are for the daemon.
    ForgedHello,
    /// Messages with the right tag, cut at every length.
    Truncated,
    /// Another version of LCCP, of a program and of the daemon.
    Version,
    /// The right key, but a clock an hour off.
    Stale,
    /// The same, of the daemon and of a program, all an hour behind.
    Behind,
    /// The right key, but another connection's packet inside.
    Mismatch,
    /// The right key, but no such command.
    Command,
    /// The right key, and commands that move other nodes' connections, or order other nodes about.
    Commands,
    /// First and later fragments.
    Fragments,
    /// Every combination of TCP flags, in flows nobody knows.
    Flags,
    /// Lengths of IP and TCP headers that are not so.
    Lengths,
    /// Segments cut at every length.
    Short,
    /// SYNs whose options lie.
    Options,
    /// SYNs from everywhere.
    SynFlood,
    /// Data and acknowledgements of connections nobody knows.
    Strays,
    /// Random bytes behind good addresses.
    Noise,
    /// Empty acknowledgements with numbers that are made up, of all of the client's ports: those of its connections are
    /// among them. Where `count` is more than one, that many from each port.
    SweepAcks,
    /// The same with data, which looks like a request.
    SweepData,
    /// The same with a FIN.
    SweepFins,
    /// The same with a RST. Of those without an acknowledgement one in 32,768 would be near a connection.
    SweepResets,
}

/// Whom the frames come from and go to.
struct Target {
    way: Way,
    client: Ipv4Addr,
    /// Of messages between nodes.
    sender: Ipv4Addr,
    node: Ipv4Addr,
    /// Of messages from the sender to the node, or what it takes for that.
    key: LccpKey,
    is_cs: bool,
}

impl Throw {
    /// Does it.
    ///
    /// # Errors
    /// The kernel refuses to send; or frames that have come were not counted.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let target = self.target(world)?;
        let frames = self.frames(&target)?;
        let Some(counter) = &self.counted else {
            return frames::send(world, &self.from, &frames);
        };
        let before = world.counters(&self.at)?;
        let lost_before = frames::lost(world, &self.from, &self.at)?;
        frames::send(world, &self.from, &frames)?;
        let lost = frames::lost(world, &self.from, &self.at)? - lost_before;
        let thrown = frames.len() as u64;
        eprintln!("  {thrown} frames thrown, {lost} lost on the way");
        ensure!(
            lost <= thrown / 10,
            "of {thrown} frames {lost} were lost on the way"
        );
        Moved::by(&self.at, counter, thrown - lost).since(world, before)
    }

    fn frames(&self, target: &Target) -> Result<Vec<Frame>> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut frames = Vec::new();
        for _ in 0..self.count {
            match self.what {
                What::Forged => lccp::forged(target, &mut frames)?,
                // The same one again and again, so that they go out one behind the other.
                What::ForgedHello => match frames.first().cloned() {
                    Some(frame) => frames.push(frame),
                    None => lccp::forged_hello(target, &mut frames)?,
                },
                What::Truncated => lccp::truncated(target, &mut frames)?,
                What::Version => lccp::version(target, &mut frames)?,
                What::Stale => lccp::stale(target, &mut frames)?,
                What::Behind => lccp::behind(target, &mut frames)?,
                What::Mismatch => lccp::mismatch(target, &mut frames)?,
                What::Command => lccp::command(target, &mut frames)?,
                What::Commands => lccp::commands(target, &mut frames)?,
                What::Fragments => tcp::fragments(target, &mut random, &mut frames)?,
                What::Flags => tcp::flags(target, &mut random, &mut frames)?,
                What::Lengths => tcp::lengths(target, &mut random, &mut frames)?,
                What::Short => tcp::short(target, &mut random, &mut frames)?,
                What::Options => tcp::options(target, &mut random, &mut frames)?,
                What::SynFlood => tcp::syn(target, &mut random, &mut frames)?,
                What::Strays => tcp::stray(target, &mut random, &mut frames)?,
                What::Noise => tcp::noise(target, &mut random, &mut frames)?,
                What::SweepAcks => tcp::sweep(target, &mut random, Sweep::Acks, &mut frames)?,
                What::SweepData => tcp::sweep(target, &mut random, Sweep::Data, &mut frames)?,
                What::SweepFins => tcp::sweep(target, &mut random, Sweep::Fins, &mut frames)?,
                What::SweepResets => tcp::sweep(target, &mut random, Sweep::Resets, &mut frames)?,
            }
        }
        Ok(frames)
    }

    fn target(&self, world: &World) -> Result<Target> {
        let address = |host: &str| match world.lab.host(host)?.addresses.first() {
            Some(IpAddr::V4(address)) => Ok(*address),
            other => bail!("{host} has the address {other:?}"),
        };
        let node = address(&self.at)?;
        let is_cs = world.lab.host(&self.at)?.roles.contains(&"cs");
        let sender = match &self.sender {
            Some(sender) => address(sender)?,
            None => match peer(world, &self.at, is_cs)? {
                Some(peer) => address(&peer)?,
                None => address("client")?,
            },
        };
        let shares = match &self.stolen {
            Some(stolen) => address(stolen)?,
            None => sender,
        };
        Ok(Target {
            way: Way {
                from: frames::mac(world, &self.from)?,
                to: frames::mac(world, &self.at)?,
            },
            client: address("client")?,
            sender,
            node,
            key: world.key.parse::<ClusterKey>()?.pair(shares, node),
            is_cs,
        })
    }
}

/// A node that this one hears: a data server for a connection server, a connection server for any other.
fn peer(world: &World, node: &str, is_cs: bool) -> Result<Option<String>> {
    let wanted = if is_cs { "ds" } else { "cs" };
    let hosts = world.lab.hosts()?.into_iter();
    let mut peers = hosts.filter(|host| host.name != node && host.roles.contains(&wanted));
    Ok(peers.next().map(|host| host.name))
}

fn client() -> String {
    "client".to_owned()
}

fn hundred() -> u32 {
    100
}
