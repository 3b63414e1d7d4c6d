//! A step that sends nodes what no well-behaved sender would send.

mod lccp;
mod target;
mod tcp;

use std::net::IpAddr;

use anyhow::{Result, bail, ensure};
use baton_wire::ClusterKey;
use serde::Deserialize;

use self::target::Target;
use self::tcp::Sweep;
use crate::frames::{self, Frame, Way};
use crate::step::checks::counters::Moved;
use crate::world::World;

/// Sends hand-made frames from a host to the MAC address of a node.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throw {
    what: What,
    /// The node that gets the frames.
    at: String,
    /// The host that sends the frames, on the same LAN as the node.
    #[serde(default = "client")]
    from: String,
    /// The host whose address messages carry. By default it is another node that this node hears, or the client if
    /// there is none.
    #[serde(rename = "as")]
    sender: Option<String>,
    /// The host whose keys the sender has stolen: messages are made under the key that this host shares with the node,
    /// whoever's address they carry. Without it they are made under the right key.
    stolen: Option<String>,
    /// The number of frames of each sort.
    #[serde(default = "hundred")]
    count: u32,
    /// A counter of the node that every frame moves which arrives there. The step allows for frames that are lost on
    /// the way; if more than a tenth are lost, the step has shown nothing, and fails.
    counted: Option<String>,
}

/// The sorts of frames. LCCP goes to the node's own address, TCP to the cluster address.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// Every command under another cluster's key.
    Forged,
    /// Heartbeats under another cluster's key, which are for the daemon.
    ForgedHello,
    /// Messages with the right tag, cut at every length.
    Truncated,
    /// Messages of another version of LCCP, one for a program and one for the daemon.
    Version,
    /// Messages under the right key, whose clock is an hour off or far away.
    Stale,
    /// A heartbeat and a message for a program under the right key, whose clock is an hour behind.
    Behind,
    /// Messages under the right key, which carry a packet of another connection.
    Mismatch,
    /// Messages under the right key, whose command does not exist.
    Command,
    /// Messages under the right key, whose commands would move other nodes' connections or give orders to other nodes.
    Commands,
    /// First and later IP fragments.
    Fragments,
    /// Segments with every combination of TCP flags, in flows that nobody knows.
    Flags,
    /// Packets whose IP or TCP headers contain wrong lengths.
    Lengths,
    /// Segments cut at every length.
    Short,
    /// SYNs whose options have wrong lengths.
    Options,
    /// SYNs from many addresses.
    SynFlood,
    /// Data and acknowledgements of connections that nobody knows.
    Strays,
    /// Random bytes behind good addresses.
    Noise,
    /// Empty acknowledgements with made-up numbers, from all of the client's ports, so that some ports are those of
    /// its connections. If `count` is more than one, that many come from each port.
    SweepAcks,
    /// Segments like those of `SweepAcks`, with data that looks like a request.
    SweepData,
    /// Segments like those of `SweepAcks`, with a FIN.
    SweepFins,
    /// Segments like those of `SweepAcks`, with a RST. All have an acknowledgement; of RSTs without one, one in 32,768
    /// would be near a connection.
    SweepResets,
}

impl Throw {
    /// Runs the step.
    ///
    /// # Errors
    /// The kernel refuses to send, or frames that arrived were not counted.
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
                // The same frame is sent again and again, so that the frames follow each other without a gap.
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

/// A node that this one hears: a data server if this one is a connection server, otherwise a connection server.
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
