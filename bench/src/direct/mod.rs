//! Measures how far one connection server goes with aware clients, which send to their data servers themselves. There
//! are more and more data servers, each with a small part of a processor, so that fifteen of them fit on one machine.
//! Aware and plain clients take turns, with a new connection for each request.

mod cluster;
mod usage;

use anyhow::Result;

use self::cluster::{Cluster, Kind, PAUSE, QUOTA, SERVERS};
use self::usage::Usage;
use crate::bpf::Counting;
use crate::options::Options;
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Pages, Work};

/// The page of the paper's measurement.
const PAGE: &str = "/64k";
/// The number of connections for each data server. A data server that has used up its part for the moment keeps some
/// of them waiting, and must not keep all.
const CONNECTIONS: u32 = 16;
const THREADS: u32 = 2;
/// The least rate, as a part of the rate on a straight line, that each number of data servers should reach.
const LINEAR: f64 = 0.95;
/// The most that a connection should cost the connection server, as a part of what it costs its data server. Then a
/// connection server as strong as one data server is enough for fifteen, which is what the paper estimates. This is
/// also the largest part of a processor that the connection server should take in all.
const PART: f64 = 1.0 / 15.0;

/// The results of one turn.
#[derive(Clone, Copy)]
struct Turn {
    measured: Measured,
    usage: Usage,
}

impl Turn {
    fn seconds(&self) -> f64 {
        self.measured.micros as f64 / 1e6
    }

    /// The processor time of one kind, in microseconds a connection.
    fn micros(&self, of: fn(&Usage) -> f64) -> f64 {
        of(&self.usage) * 1e6 / self.measured.requests as f64
    }
}

/// The results of one round: for each number of data servers, those of aware and of plain clients.
type Round = Vec<[Turn; 2]>;

/// Measures, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let cluster = Cluster::raise(options)?;
    let _counting = Counting::on()?;
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        eprintln!("aware clients: round {} of {}", round + 1, options.rounds);
        let turns = SERVERS.map(|servers| {
            let [first, second] = if round % 2 == 0 {
                [Kind::Aware, Kind::Plain]
            } else {
                [Kind::Plain, Kind::Aware]
            };
            let first = (first, turn(&cluster, options, first, servers)?);
            let second = (second, turn(&cluster, options, second, servers)?);
            Ok(match first.0 {
                Kind::Aware => [first.1, second.1],
                Kind::Plain => [second.1, first.1],
            })
        });
        rounds.push(turns.into_iter().collect::<Result<Round>>()?);
    }
    let aware = cluster.made_aware()?;
    Ok(markdown(&rounds) + &checked(&rounds, aware))
}

fn turn(cluster: &Cluster, options: &Options, kind: Kind, servers: u32) -> Result<Turn> {
    // Work that an earlier turn left behind must not count in this one.
    std::thread::sleep(PAUSE);
    let before = cluster.usage(servers)?;
    let work = Work {
        pages: Pages::One(PAGE),
        close: true,
        connections: CONNECTIONS * servers,
        threads: THREADS,
        time: options.turn,
    };
    let measured = wrk::run_on(cluster.lab(), kind.host(), cluster::target(servers)?, work)?;
    Ok(Turn {
        measured,
        usage: cluster.usage(servers)?.since(before),
    })
}

/// A sentence that shows whether the aware clients were really aware.
fn checked(rounds: &[Round], aware: u64) -> String {
    let requests: u64 = (rounds.iter().flatten())
        .map(|[aware, _]| aware.measured.requests)
        .sum();
    format!(
        "\nOf {requests} connections of the aware client's that were counted, and of those that a turn's end cut off, \
         {aware} were told where their data server is.\n"
    )
}

fn markdown(rounds: &[Round]) -> String {
    let quota = QUOTA * 100.0;
    let mut text = format!(
        "## One connection server and 1 to 15 data servers, aware and plain clients ({PAGE}, a connection each)\n\n\
         Each data server has {quota} % of a processor, {CONNECTIONS} connections for each at once. Of a straight line: \
         connections/s of so many data servers, of so many times those of one, within a round. Machine: processors \
         busy, of all.\n\n\
         | data servers | aware: connections/s | of a straight line | goal | errors | machine | plain: connections/s | of \
         a straight line | errors | machine |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for (at, servers) in SERVERS.into_iter().enumerate() {
        text += &format!("| {servers}");
        for kind in Kind::ALL {
            let turns = || rounds.iter().map(|round| round[at][kind as usize]);
            let rate = Spread::of(turns().map(|turn| turn.measured.rate())).median;
            let errors: u64 = turns().map(|turn| turn.measured.errors()).sum();
            let busy = Spread::of(turns().map(|turn| turn.usage.machine / turn.seconds()));
            let goal = match kind {
                Kind::Aware => format!("| ≥ {LINEAR} "),
                Kind::Plain => String::new(),
            };
            text += &format!(
                " | {rate:.0} | {} {goal}| {errors} | {:.0} %",
                straight(rounds, at, kind),
                busy.median * 100.0,
            );
        }
        text += " |\n";
    }
    text += "\n## What that takes of the connection server (median of rounds)\n\n\
             µs a connection. Program: runs of baton_cs, as the kernel counts them. Receiving: the thread that polls its \
             interface, with the program, the driver (veth copies each packet for XDP) and the thread's own waking. Data server: \
             nginx, with the kernel's sending, and the thread that polls its interface. In hundredths of one processor: its daemon, which has \
             as much to do without connections, and all of it.\n\n\
             | data servers | client | packets | program | receiving | data server | program / data server | receiving / data server | goal \
             | daemon | all of it | goal |\n|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for (at, servers) in SERVERS.into_iter().enumerate() {
        for kind in Kind::ALL {
            let turns = || rounds.iter().map(|round| round[at][kind as usize]);
            let median = |of: &dyn Fn(Turn) -> f64| Spread::of(turns().map(of)).median;
            let [part, budget] = match kind {
                Kind::Aware => [format!("≤ {PART:.3}"), format!("≤ {:.1} %", PART * 100.0)],
                Kind::Plain => ["–".to_owned(), "–".to_owned()],
            };
            text += &format!(
                "| {servers} | {} | {:.1} | {:.2} | {:.2} | {:.1} | {:.3} | {:.3} | {part} | {:.2} % | {:.2} % | {budget} |\n",
                kind.host(),
                median(&|turn| turn.usage.packets as f64 / turn.measured.requests as f64),
                median(&|turn| turn.micros(|usage| usage.program)),
                median(&|turn| turn.micros(|usage| usage.receiving)),
                median(&|turn| turn.micros(|usage| usage.servers)),
                median(&|turn| turn.usage.program / turn.usage.servers),
                median(&|turn| turn.usage.receiving / turn.usage.servers),
                median(&|turn| turn.usage.daemon / turn.seconds() * 100.0),
                median(&|turn| turn.usage.connection_server() / turn.seconds() * 100.0),
            );
        }
    }
    text
}

/// The rate of a number of data servers, divided by that number times the rate of one.
fn straight(rounds: &[Round], at: usize, kind: Kind) -> Spread {
    let rate = |turns: &[Turn; 2]| turns[kind as usize].measured.rate();
    let times = f64::from(SERVERS[at]) / f64::from(SERVERS[0]);
    Spread::of((rounds.iter()).map(|round| rate(&round[at]) / (times * rate(&round[0]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(requests: u64) -> Turn {
        let mut measured = Measured::default();
        (measured.requests, measured.micros) = (requests, 1_000_000);
        let usage = Usage {
            packets: 4 * requests,
            program: requests as f64 * 1e-6,
            receiving: requests as f64 * 3e-6,
            daemon: 0.02,
            servers: requests as f64 * 60e-6,
            machine: 0.5,
        };
        Turn { measured, usage }
    }

    #[test]
    fn a_straight_line_goes_through_the_first_point_of_its_round() {
        let round = |one: u64| -> Round {
            let turns = SERVERS.map(|servers| [turn(one * u64::from(servers)), turn(one)]);
            turns.to_vec()
        };
        let rounds = [round(100), round(300)];
        let last = SERVERS.len() - 1;
        assert_eq!(straight(&rounds, last, Kind::Aware).min, 1.0);
        assert_eq!(
            straight(&rounds, last, Kind::Plain).max,
            1.0 / f64::from(SERVERS[last])
        );
    }

    #[test]
    fn the_program_is_a_part_of_receiving() {
        let turn = turn(10_000);
        assert!((turn.micros(|usage| usage.receiving) - 3.0).abs() < 1e-9);
        assert!((turn.usage.connection_server() - 0.05).abs() < 1e-9);
    }
}
