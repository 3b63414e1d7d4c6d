//! Measures what moving costs if messages between nodes are lost: wrk as under handovers, while the switch drops a
//! part of LCCP's packets. The losses take turns, like the other loads.

use anyhow::{Context as _, Result};
use baton_lab::BRIDGE;

use crate::lab::BenchLab;
use crate::options::Options;
use crate::snmp;
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Pages, Target, Work};

/// The losses in percent, in the order of the turns of a round. The others are compared with the first one.
const LOSSES: [u32; 3] = [0, 1, 5];
/// The least rate that each loss, in percent, should reach, as a part of the rate without loss.
const GOALS: [(u32, f64); 1] = [(1, 0.97)];
const PAGES: [&str; 2] = ["/ds1/4k", "/ds2/4k"];
const CONNECTIONS: u32 = 64;
const THREADS: u32 = 2;
const TABLE: &str = "netdev baton_bench_loss";
const COUNTER: &str = "lost";

/// The results of one loss in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    measured: Measured,
    /// The number of messages that the switch dropped; `sent_again` is the number that nodes have sent again.
    lost: u64,
    sent_again: u64,
    /// How often a retransmission timer of the client expired.
    timeouts: u64,
}

/// Measures all losses, and returns the report in Markdown.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<String> {
    eprintln!("moving with losses: {} rounds", options.rounds);
    round(lab, options)?; // warms up
    let rounds: Vec<[Turn; LOSSES.len()]> = (0..options.rounds)
        .map(|_| round(lab, options))
        .collect::<Result<_>>()?;
    Ok(markdown(&rounds))
}

fn round(lab: &BenchLab, options: &Options) -> Result<[Turn; LOSSES.len()]> {
    let mut turns = [Turn::default(); LOSSES.len()];
    for (turn, percent) in turns.iter_mut().zip(LOSSES) {
        *turn = self::turn(lab, options, percent)?;
    }
    Ok(turns)
}

fn turn(lab: &BenchLab, options: &Options, percent: u32) -> Result<Turn> {
    let rules = Rules::set(lab, percent)?;
    let (sent_again, timeouts) = (lab.counter("lccp_sent_again")?, timeouts(lab)?);
    let measured = wrk::run(
        lab,
        Target::BATON,
        Work {
            pages: Pages::InTurn(PAGES),
            close: false,
            connections: CONNECTIONS,
            threads: THREADS,
            time: options.turn,
        },
    )?;
    Ok(Turn {
        measured,
        lost: rules.lost()?,
        sent_again: lab.counter("lccp_sent_again")? - sent_again,
        timeouts: self::timeouts(lab)? - timeouts,
    })
}

/// The nftables rules where messages enter the switch. Dropping this removes them. They are also there for turns
/// without loss, so that they cost every turn the same.
struct Rules<'a> {
    lab: &'a BenchLab,
}

impl Rules<'_> {
    fn set(lab: &BenchLab, percent: u32) -> Result<Rules<'_>> {
        let chains: String = lab
            .nodes()?
            .iter()
            .map(|host| {
                format!(
                    "chain from_{host} {{\n\
                     type filter hook ingress device \"{host}\" priority 0; policy accept;\n\
                     ip protocol 253 numgen random mod 100 < {percent} counter name {COUNTER} drop\n}}\n"
                )
            })
            .collect();
        let text = format!("table {TABLE} {{\ncounter {COUNTER} {{ }}\n{chains}}}\n");
        // nft makes either all of it or nothing, so nothing has to be removed after an error.
        lab.running()?.nft(BRIDGE, &text)?;
        Ok(Rules { lab })
    }

    fn lost(&self) -> Result<u64> {
        let counters = self.lab.running()?.nft_counters(BRIDGE)?;
        let lost = counters.get(COUNTER).map(|counted| counted.packets);
        lost.with_context(|| format!("nft lists no counter {COUNTER}"))
    }
}

impl Drop for Rules<'_> {
    fn drop(&mut self) {
        let script = format!("delete table {TABLE}");
        let running = self.lab.running();
        if let Err(error) = running.and_then(|lab| Ok(lab.nft(BRIDGE, &script)?)) {
            eprintln!("bench: packets are still lost in the lab: {error:#}");
        }
    }
}

/// How often a retransmission timer of the client has expired: TCPTimeouts of TcpExt, which nstat(8) shows.
fn timeouts(lab: &BenchLab) -> Result<u64> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/netstat");
    let text = lab.running()?.within("client", read)??;
    snmp::column(&text, "TcpExt", "TCPTimeouts")
}

fn markdown(rounds: &[[Turn; LOSSES.len()]]) -> String {
    let mut text = format!(
        "## Requests a second where messages between nodes are lost ({CONNECTIONS} connections that move, 4 KB)\n\n\
         | lost | requests/s | of the lossless rate | goal | errors | messages lost | sent again | client's timeouts |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for (at, percent) in LOSSES.into_iter().enumerate() {
        let turns = || rounds.iter().map(|round| round[at]);
        let sum = |of: fn(Turn) -> u64| turns().map(of).sum::<u64>();
        let rate = Spread::of(turns().map(|turn| turn.measured.rate())).median;
        let ratios = rounds
            .iter()
            .map(|round| round[at].measured.rate() / round[0].measured.rate());
        let ratio = match percent {
            0 => "–".to_owned(),
            _ => Spread::of(ratios).to_string(),
        };
        let goal = GOALS.iter().find(|(of, _)| *of == percent);
        let goal = goal.map_or("–".to_owned(), |(_, least)| format!("≥ {least}"));
        text += &format!(
            "| {percent} % | {rate:.0} | {ratio} | {goal} | {} | {} | {} | {} |\n",
            sum(|turn| turn.measured.errors()),
            sum(|turn| turn.lost),
            sum(|turn| turn.sent_again),
            sum(|turn| turn.timeouts),
        );
    }
    text
}
