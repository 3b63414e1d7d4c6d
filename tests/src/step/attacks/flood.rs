//! Packets of connections that nobody has opened, at the highest rate that one processor sends, while other steps happen.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, ensure};
use etherparse::{TcpHeader, TcpOptionElement};
use fastrand::Rng;
use serde::Deserialize;

use crate::frames::{self, Frame, Way};
use crate::step::Step;
use crate::world::{CLUSTER, World};

/// Each packet has another sender, other ports and other numbers; nothing of it comes twice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// The node.
    at: String,
    /// Which host sends, on the same LAN as the node.
    from: String,
    what: What,
    /// Of data in each.
    #[serde(default)]
    bytes: usize,
    /// So many a second, or nothing was shown.
    at_least: u64,
    meanwhile: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// Acknowledgements, with timestamps that are made up.
    Acks,
    /// RSTs.
    Resets,
}

/// Where the fields of a frame are that each one has for itself (RFC 791; RFC 9293, 3.1; RFC 7323, 3.2).
const SENDER_AT: usize = frames::IP_AT + 12;
const NUMBERS_AT: usize = frames::TCP_AT + 4;
const TIMES_AT: usize = frames::TCP_AT + 24;

impl Flood {
    /// Does it.
    ///
    /// # Errors
    /// A step failed, or the flood was none.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let way = Way {
            from: frames::mac(world, &self.from)?,
            to: frames::mac(world, &self.at)?,
        };
        let model = self.model(way)?;
        let (lab, from) = (world.lab.clone(), self.from.clone());
        let ended = AtomicBool::new(false);
        let begun = Instant::now();
        let (steps, sent) = thread::scope(|scope| {
            let flood = scope.spawn(|| {
                let mut random = Rng::new();
                let next = |frame: &mut Frame| {
                    become_another(frame, &mut random);
                    !ended.load(Relaxed)
                };
                lab.within(&from, || frames::flood(model, next))
            });
            let steps = self.meanwhile.iter().try_for_each(|step| {
                step.run(world)
                    .with_context(|| format!("in the flood, {step}"))
            });
            ended.store(true, Relaxed);
            (steps, flood.join())
        });
        let sent = sent.map_err(|_| anyhow!("the flood panicked"))???;
        let rate = (sent as f64 / begun.elapsed().as_secs_f64()) as u64;
        eprintln!("  a flood of {rate} packets a second");
        steps?;
        ensure!(
            rate >= self.at_least,
            "a flood of {rate} packets a second is less than {}",
            self.at_least
        );
        Ok(())
    }

    fn model(&self, way: Way) -> Result<Frame> {
        let is_ack = matches!(self.what, What::Acks);
        let mut header = TcpHeader {
            ack: is_ack,
            rst: !is_ack,
            window_size: 1000,
            ..TcpHeader::default()
        };
        let times = TcpOptionElement::Timestamp(0, 0);
        header.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, times])?;
        let from = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        way.tcp(
            from,
            SocketAddrV4::new(CLUSTER, 80),
            header,
            &vec![b'x'; self.bytes],
        )
    }
}

/// Another sender, and other numbers. The sum of its IP header is right, that of TCP is not: only who has the connection
/// would look at it.
fn become_another(frame: &mut Frame, random: &mut Rng) {
    // RFC 2544's benchmarking network, which no host has, and more: 64,000 networks, as of a botnet.
    let sender = Ipv4Addr::from_bits(random.u32(0x1000_0000..0x2000_0000));
    frame[SENDER_AT..][..4].copy_from_slice(&sender.octets());
    frame[frames::TCP_AT..][..2].copy_from_slice(&random.u16(1024..).to_be_bytes());
    random.fill(&mut frame[NUMBERS_AT..][..8]);
    random.fill(&mut frame[TIMES_AT..][..8]);
    frames::write_sum(frame);
}
