//! A step that sends packets of connections that nobody has opened, at the highest rate that one processor can send,
//! while other steps happen.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use etherparse::{TcpHeader, TcpOptionElement};
use fastrand::Rng;
use serde::Deserialize;

use crate::frames::{self, Frame, Way};
use crate::step::{Step, meanwhile};
use crate::world::{CLUSTER, World};

/// Sends acknowledgements with made-up timestamps. Each has another sender, other ports and other numbers, so that no
/// packet comes twice.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// The node that gets the packets.
    at: String,
    /// The host that sends, which is on the same LAN as the node.
    from: String,
    /// The number of bytes of data in each packet.
    #[serde(default)]
    bytes: usize,
    /// The lowest rate, in packets a second. At a lower rate the step has shown nothing, and fails.
    at_least: u64,
    meanwhile: Vec<Step>,
}

/// Offsets in a frame of the fields that differ in each (RFC 791; RFC 9293, 3.1; RFC 7323, 3.2).
const SENDER_AT: usize = frames::IP_AT + 12;
const NUMBERS_AT: usize = frames::TCP_AT + 4;
const TIMES_AT: usize = frames::TCP_AT + 24;

impl Flood {
    /// Runs the step.
    ///
    /// # Errors
    /// A step failed, or the flood was too slow.
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
            let steps = meanwhile(&self.meanwhile, world);
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
        let mut header = TcpHeader {
            ack: true,
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

/// Gives a frame another sender and other numbers. The checksum of its IP header is right, that of TCP is not: only a
/// host that has the connection would look at it.
fn become_another(frame: &mut Frame, random: &mut Rng) {
    // The addresses are those of RFC 2544's benchmarking network, which no host has, and more: 64,000 networks, like
    // those of a botnet.
    let sender = Ipv4Addr::from_bits(random.u32(0x1000_0000..0x2000_0000));
    frame[SENDER_AT..][..4].copy_from_slice(&sender.octets());
    frame[frames::TCP_AT..][..2].copy_from_slice(&random.u16(1024..).to_be_bytes());
    random.fill(&mut frame[NUMBERS_AT..][..8]);
    random.fill(&mut frame[TIMES_AT..][..8]);
    frames::write_sum(frame);
}
