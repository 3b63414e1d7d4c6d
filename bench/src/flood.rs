//! Measures what still reaches clients while one processor sends as many packets as it can to the connection server.
//! Floods are compared with a flood of UDP, which costs the connection server's kernel as many packets, but has no
//! meaning for it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use baton_lab::BRIDGE;
use baton_tests::frames::{self, Frame, IP_AT, TCP_AT, Way};
use etherparse::{TcpHeader, TcpOptionElement};
use fastrand::Rng;

use crate::lab::{BenchLab, in_bench};
use crate::options::Options;
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Pages, Target, Work};

const CLUSTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 100);
const DATA_SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);
const CANDIDATES: [&str; 2] = ["cs1", "cs2"];
/// The host that sends the floods, which is on the nodes' LAN.
const SENDER: &str = "router";
/// The time from the beginning of a turn until its event happens.
const LEAD: Duration = Duration::from_secs(2);
/// IP protocol numbers: UDP (RFC 768), and LCCP, unless a cluster configures another.
const UDP: u8 = 17;
const LCCP: u8 = 253;

/// The kinds of floods.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// UDP, with which the other kinds are compared.
    Udp,
    /// SYNs of new connections.
    Syns,
    /// Acknowledgements of connections that nobody has, with made-up timestamps.
    Acks,
    /// LCCP messages in the name of a data server, with a wrong tag.
    Messages,
    /// Fragments of packets to the cluster address.
    Fragments,
}

impl Kind {
    const ALL: [Kind; 5] = [
        Kind::Udp,
        Kind::Syns,
        Kind::Acks,
        Kind::Messages,
        Kind::Fragments,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Udp => "UDP",
            Kind::Syns => "SYNs",
            Kind::Acks => "ACKs",
            Kind::Messages => "forged messages",
            Kind::Fragments => "fragments",
        }
    }

    /// The frame from which all others are made. `own` is the connection server's address.
    fn model(self, way: Way, own: Ipv4Addr) -> Result<Frame> {
        let from = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let to = SocketAddrV4::new(CLUSTER, 80);
        let tcp = |syn: bool| {
            let mut header = TcpHeader {
                syn,
                ack: !syn,
                window_size: 1000,
                ..TcpHeader::default()
            };
            let times = TcpOptionElement::Timestamp(0, 0);
            header.set_options(&[TcpOptionElement::Noop, TcpOptionElement::Noop, times])?;
            way.tcp(from, to, header, &[])
        };
        match self {
            Kind::Udp => {
                // A UDP header: ports, a length of 32, and no checksum.
                let header = [0, 0, 0, 80, 0, 32, 0, 0];
                way.ip(*from.ip(), CLUSTER, UDP, &[&header[..], &[0; 24]].concat())
            }
            Kind::Syns => tcp(true),
            Kind::Acks => tcp(false),
            Kind::Messages => {
                // The message has the current version of LCCP, goes to the program of a connection server, and is
                // NONE; the bytes that are changed for each frame follow.
                let message = [&[2, 1, 7, 0][..], &[0; 116]].concat();
                way.ip(DATA_SERVER, own, LCCP, &message)
            }
            Kind::Fragments => {
                let mut frame = tcp(false)?;
                frame[IP_AT + 6] |= 0x20; // more of them follow
                Ok(frame)
            }
        }
    }

    /// Gives the frame another sender and other numbers, or, for messages, another tag.
    fn become_another(self, frame: &mut Frame, random: &mut Rng) {
        if self == Kind::Messages {
            random.fill(&mut frame[TCP_AT + 8..][..100]);
            return;
        }
        let sender = Ipv4Addr::from_bits(random.u32(0x1000_0000..0x2000_0000));
        frame[IP_AT + 12..][..4].copy_from_slice(&sender.octets());
        frame[TCP_AT..][..2].copy_from_slice(&random.u16(1024..).to_be_bytes());
        if self != Kind::Udp {
            random.fill(&mut frame[TCP_AT + 4..][..8]);
            random.fill(&mut frame[TCP_AT + 24..][..8]);
        }
        frames::write_sum(frame);
    }
}

/// The event that happens during a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Load,
    /// A data server is drained, and then serves again.
    Drain,
    /// The connection server in front is cut off. The flood goes to the other one.
    Takeover,
}

impl Phase {
    const ALL: [Phase; 3] = [Phase::Load, Phase::Drain, Phase::Takeover];

    fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Drain => "drain",
            Phase::Takeover => "takeover",
        }
    }
}

/// The results of one turn.
struct Turn {
    measured: Measured,
    /// The rate of the flood, in packets a second.
    flood: f64,
}

/// Measures all kinds of floods, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let file = std::fs::read_to_string(in_bench("../labs/failover.toml")?)?;
    let file = file.replace("name = \"failover\"", "name = \"bench-flood\"");
    let file = file.replace(
        "[config.failover]\n",
        "[config.failover]\ndetection = \"1s\"\n",
    );
    // Without its pools the lab has one pool of all data servers, so that each may be drained.
    let (file, _) = file
        .split_once("[[config.service.pool]]")
        .context("the lab has no pools to leave out")?;
    let lab = BenchLab::raise_from(file, options)?;
    let memory = || {
        CANDIDATES
            .map(|host| kilobytes(&lab, host))
            .into_iter()
            .sum::<Result<u64>>()
    };
    let (before, mut text) = (memory()?, String::new());
    for phase in Phase::ALL {
        for _ in 0..2 {
            turn(&lab, options, Phase::Load, None)?;
        }
        let mut turns = Kind::ALL.map(|_| Vec::new());
        for round in 0..options.rounds {
            eprintln!(
                "floods, {}: round {} of {}",
                phase.name(),
                round + 1,
                options.rounds
            );
            for (kind, turns) in Kind::ALL.into_iter().zip(&mut turns) {
                turns.push(turn(&lab, options, phase, Some(kind))?);
            }
        }
        for (kind, of_kind) in Kind::ALL.into_iter().zip(&turns) {
            let ratios = of_kind
                .iter()
                .zip(&turns[0])
                .map(|(turn, udp)| turn.measured.rate() / udp.measured.rate());
            text += &format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                phase.name(),
                kind.name(),
                Spread::of(of_kind.iter().map(|turn| turn.flood / 1000.0)),
                Spread::of(of_kind.iter().map(|turn| turn.measured.rate())),
                Spread::of(ratios),
                of_kind
                    .iter()
                    .map(|turn| turn.measured.errors())
                    .sum::<u64>(),
            );
        }
    }
    let after = memory()?;
    Ok(format!(
        "## Floods\n\n\
         One processor sends as many packets as it can to the connection server, and clients ask for /4k over {} \
         connections. Interleaved, {} rounds, turns of {} s; medians, and what they lie between. Goodput beside that under \
         the flood of UDP of the same round. Memory of both connection servers' daemons: {before} KB before, {after} KB \
         after.\n\n\
         | meanwhile | flood | thousands a second | requests a second | beside UDP | failed |\n\
         |---|---|--:|--:|--:|--:|\n{text}",
        options.connections,
        options.rounds,
        length(options).as_secs(),
    ))
}

fn length(options: &Options) -> Duration {
    options.turn.max(3 * LEAD)
}

/// The resident memory of a daemon, in kilobytes (proc_pid_status(5)).
fn kilobytes(lab: &BenchLab, host: &str) -> Result<u64> {
    let path = format!("/proc/{}/status", lab.daemon(host)?);
    let status = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.with_context(|| format!("{path} says no VmRSS"))
}

/// The connection server that is in front, and the other one.
fn roles(lab: &BenchLab) -> Result<[&'static str; 2]> {
    let status = lab.ask(CANDIDATES[0], &["status"])?;
    let front = status["failover"]["front"]
        .as_str()
        .context("nobody is in front")?;
    Ok(if front == CANDIDATES[0] {
        CANDIDATES
    } else {
        [CANDIDATES[1], CANDIDATES[0]]
    })
}

fn mac(lab: &BenchLab, host: &str) -> Result<[u8; 6]> {
    let said = lab.said(host, &["cat", "/sys/class/net/eth0/address"])?;
    let bytes: Option<Vec<u8>> = said
        .trim()
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.with_context(|| format!("no MAC address: {said}"))
}

/// Runs one turn: clients ask, the flood begins, and the event of the phase happens.
fn turn(lab: &BenchLab, options: &Options, phase: Phase, kind: Option<Kind>) -> Result<Turn> {
    let [front, next] = roles(lab)?;
    let work = Work {
        pages: Pages::One("/4k"),
        close: false,
        connections: options.connections,
        threads: 2,
        time: length(options),
    };
    let at = if phase == Phase::Takeover {
        next
    } else {
        front
    };
    let frame = match kind {
        Some(kind) => {
            let own = if at == CANDIDATES[0] { 2 } else { 3 };
            let way = Way {
                from: mac(lab, SENDER)?,
                to: mac(lab, at)?,
            };
            Some((kind, kind.model(way, Ipv4Addr::new(10, 77, 0, own))?))
        }
        None => None,
    };
    let ended = AtomicBool::new(false);
    let (measured, sent) = thread::scope(|scope| {
        let flood = scope.spawn(|| -> Result<u64> {
            let Some((kind, frame)) = frame else {
                return Ok(0);
            };
            let mut random = Rng::new();
            lab.running()?.within(SENDER, || {
                frames::flood(frame, |frame| {
                    kind.become_another(frame, &mut random);
                    !ended.load(Relaxed)
                })
            })?
        });
        let event = scope.spawn(|| {
            thread::sleep(LEAD);
            happen(lab, phase, front)
        });
        let measured = wrk::run(lab, Target::BATON, work);
        ended.store(true, Relaxed);
        let happened = event
            .join()
            .map_err(|_| anyhow!("what was to happen panicked"));
        let sent = flood.join().map_err(|_| anyhow!("the flood panicked"));
        (
            measured.and_then(|measured| happened?.map(|()| measured)),
            sent,
        )
    });
    let (measured, sent) = (measured?, sent??);
    settle(lab, phase, front)?;
    Ok(Turn {
        measured,
        flood: sent as f64 / length(options).as_secs_f64(),
    })
}

fn happen(lab: &BenchLab, phase: Phase, front: &str) -> Result<()> {
    match phase {
        Phase::Load => Ok(()),
        Phase::Drain => {
            let config = lab.running()?.host(front)?.directory.join("baton.toml");
            let config = [
                "--config",
                config.to_str().context("its path is not UTF-8")?,
            ];
            lab.baton(front, &[&["drain", "ds1"][..], &config].concat())?;
            lab.baton(front, &[&["drain", "ds1", "--undo"][..], &config].concat())
                .map(drop)
        }
        Phase::Takeover => lab
            .said(BRIDGE, &["ip", "link", "set", front, "down"])
            .map(drop),
    }
}

/// Waits until the lab is in order again. After a takeover, the other connection server stays in front.
fn settle(lab: &BenchLab, phase: Phase, front: &str) -> Result<()> {
    if phase != Phase::Takeover {
        return Ok(());
    }
    lab.said(BRIDGE, &["ip", "link", "set", front, "up"])?;
    for _ in 0..100 {
        thread::sleep(Duration::from_millis(100));
        let says = |host| {
            lab.ask(host, &["status"])
                .map(|status| status["failover"]["front"].clone())
        };
        let (one, other) = (says(CANDIDATES[0])?, says(CANDIDATES[1])?);
        if one == other && one.as_str().is_some_and(|now| now != front) {
            return Ok(());
        }
    }
    ensure!(false, "{front} does not see who took over");
    Ok(())
}
