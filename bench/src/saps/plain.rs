//! Measures what SAPS carries where no link is narrow: the same nginx behind virtual sockets, with each forwarding
//! network, and with its own TCP.

use anyhow::Result;

use super::system::APPLICATION_NODES;
use crate::cpu::CpuTime;
use crate::lab::BenchLab;
use crate::options::Options;
use crate::processes;
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Pages, Target, Work};

const LAB: &str = include_str!("../../../labs/saps.toml");
/// The texts in labs/saps.toml that are replaced.
const NAME: &str = "name = \"saps\"";
const FORWARDING: &str = "[config.forwarding]";

/// The pages, by name and path, and their bytes.
const PAGES: [(&str, &str, u64); 3] = [
    ("4 KB", "/4k", 4 << 10),
    ("64 KB", "/64k", 64 << 10),
    ("1 MB", "/1m", 1 << 20),
];
const CONNECTIONS: u32 = 64;
/// The number of wrk's threads: one for each server, as in the other benchmarks.
const THREADS: u32 = 4;

/// A way to the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tcp,
    Quic,
    Direct,
}

struct Labs {
    /// The lab with the TCP network, which also has the servers of direct access.
    tcp: BenchLab,
    quic: BenchLab,
}

/// The results of one way's turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    measured: Measured,
    /// The seconds of processor time of the whole machine; `io` is that of the I/O server's daemon, `agents` that of
    /// the daemons on the application nodes.
    machine: f64,
    io: f64,
    agents: f64,
}

/// Measures all pages, and returns the report in Markdown.
pub(super) fn measure(options: &Options) -> Result<String> {
    let tcp = BenchLab::raise_from(&lab(Way::Tcp), options)?;
    let quic = tcp.raise_beside(&lab(Way::Quic))?;
    let labs = Labs { tcp, quic };
    let mut text = format!(
        "## SAPS where nothing is narrow, beside direct access ({CONNECTIONS} connections)\n\n\
         Processor time a gigabyte: of the whole machine, and of the daemons alone.\n\n\
         | page | way | requests/s | GB/s | of direct | machine, ms/GB | I/O server's daemon | agents | errors |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for (name, page, bytes) in PAGES {
        eprintln!("{name}: {} rounds", options.rounds);
        labs.round(options, page)?; // warms up
        let rounds = (0..options.rounds)
            .map(|_| labs.round(options, page))
            .collect::<Result<Vec<_>>>()?;
        for (at, way) in Way::ALL.into_iter().enumerate() {
            text += &line(name, way, bytes, at, &rounds);
        }
    }
    Ok(text)
}

impl Way {
    /// All ways, in the order of their turns. The others are compared with the last one.
    const ALL: [Way; 3] = [Way::Tcp, Way::Quic, Way::Direct];

    fn name(self) -> &'static str {
        match self {
            Way::Tcp => "SAPS, tcp",
            Way::Quic => "SAPS, quic",
            Way::Direct => "direct",
        }
    }
}

/// The text of labs/saps.toml under a name of its own, with this way's forwarding network. The lab of the first way
/// also has the servers for direct access.
fn lab(way: Way) -> String {
    let network = if way == Way::Quic { "quic" } else { "tcp" };
    let mut text = LAB
        .replace(NAME, &format!("name = \"bench-saps-{network}\""))
        .replace(
            FORWARDING,
            &format!("{FORWARDING}\nnetwork = \"{network}\""),
        );
    if way == Way::Tcp {
        for number in 1..=THREADS {
            text += &format!(
                "\n[[host]]\nname = \"server{number}\"\naddress = \"10.77.0.2{number}/24\"\nrun = [\"nginx\"]\n"
            );
        }
    }
    text
}

impl Labs {
    fn round(&self, options: &Options, page: &'static str) -> Result<[Turn; Way::ALL.len()]> {
        let [a, b, c] = Way::ALL.map(|way| self.turn(options, way, page));
        Ok([a?, b?, c?])
    }

    fn turn(&self, options: &Options, way: Way, page: &'static str) -> Result<Turn> {
        let (lab, target) = match way {
            Way::Tcp => (&self.tcp, Target::SAPS),
            Way::Quic => (&self.quic, Target::SAPS),
            Way::Direct => (&self.tcp, Target::SAPS_DIRECT),
        };
        let work = Work {
            pages: Pages::One(page),
            close: false,
            connections: CONNECTIONS,
            threads: THREADS,
            time: options.turn,
        };
        let agents = || {
            let each = APPLICATION_NODES.map(|host| processes::seconds(lab.daemon(host)?));
            each.into_iter().sum::<Result<f64>>()
        };
        let io = || processes::seconds(lab.daemon("io1")?);
        let (machine, io_before, agents_before) = (CpuTime::now()?, io()?, agents()?);
        let measured = wrk::run(lab, target, work)?;
        Ok(Turn {
            measured,
            machine: CpuTime::now()?.micros_since(machine) / 1e6,
            io: io()? - io_before,
            agents: agents()? - agents_before,
        })
    }
}

fn line(name: &str, way: Way, bytes: u64, at: usize, rounds: &[[Turn; Way::ALL.len()]]) -> String {
    let gigabytes = |turn: &Turn| (turn.measured.requests * bytes) as f64 / 1e9;
    let median =
        |of: &dyn Fn(&Turn) -> f64| Spread::of(rounds.iter().map(|round| of(&round[at]))).median;
    let work = |of: fn(&Turn) -> f64| median(&|turn| of(turn) * 1e3 / gigabytes(turn));
    let direct = Way::ALL.len() - 1;
    let ratio = Spread::of(
        (rounds.iter()).map(|round| round[at].measured.rate() / round[direct].measured.rate()),
    );
    let daemons = match way {
        Way::Direct => "– | –".to_owned(),
        _ => format!(
            "{:.0} | {:.0}",
            work(|turn| turn.io),
            work(|turn| turn.agents)
        ),
    };
    format!(
        "| {name} | {} | {:.0} | {:.3} | {} | {:.0} | {daemons} | {} |\n",
        way.name(),
        median(&|turn| turn.measured.rate()),
        median(&|turn| turn.measured.rate() * bytes as f64 / 1e9),
        if way == Way::Direct {
            "–".to_owned()
        } else {
            ratio.to_string()
        },
        work(|turn| turn.machine),
        rounds
            .iter()
            .map(|round| round[at].measured.errors())
            .sum::<u64>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_a_lab() -> Result<()> {
        let [tcp, quic] = [Way::Tcp, Way::Quic].map(lab);
        assert_ne!(
            baton_lab::Lab::parse(&tcp)?.name(),
            baton_lab::Lab::parse(&quic)?.name()
        );
        assert!(quic.contains("network = \"quic\""), "{quic}");
        assert!(tcp.contains("10.77.0.24/24"), "{tcp}");
        Ok(())
    }
}
