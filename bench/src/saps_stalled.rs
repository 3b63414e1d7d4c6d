//! Measures how clients that read nothing of a long answer affect the others: virtual sockets on four application
//! nodes behind one I/O server. Requests go one after the other over all connections in turn. Turns with and without
//! stalled connections alternate, so that both meet the same machine.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::lab::{BenchLab, in_bench};
use crate::latency::Client;
use crate::options::Options;
use crate::statistics::{Spread, percentile};

const CLUSTER: (&str, u16) = ("10.77.0.100", 80);
/// One in this many connections is stalled.
const ONE_IN: u32 = 10;
/// The page that the others ask for and read.
const PAGE: &str = "/4k";
/// The request of the stalled connections, for a page that is larger than all that can be on its way.
const LARGE: &[u8] = b"GET /64m HTTP/1.1\r\nHost: cluster\r\n\r\n";
/// More bytes than a receive buffer holds if nobody reads.
const MOST_UNREAD: usize = 1 << 20;
const LOOK: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of files that this process needs besides the connections.
const OTHER_FILES: u64 = 1000;
/// The greatest ratio of the others' 99th percentiles, with stalled connections to without.
const GOAL: &str = "≤ 1.10";

/// The percentiles of one turn, in microseconds.
#[derive(Clone, Copy)]
struct Turn {
    p50: f64,
    p99: f64,
}

type Of = fn(&Turn) -> f64;

/// Measures, and returns the report in Markdown.
pub(crate) fn measure(options: &Options, connections: u32) -> Result<String> {
    allow_files(u64::from(connections) + OTHER_FILES)?;
    let file = std::fs::read_to_string(in_bench("../labs/saps.toml")?)?;
    let text = file.replace("name = \"saps\"", "name = \"bench-stalled\"");
    let lab = BenchLab::raise_from(&text, options)?;
    let stalled = connections / ONE_IN;
    let others = connections - stalled;
    eprintln!("{others} connections beside {stalled} that stand still");
    let rounds = (lab.running()?).within("client", || turns(options.rounds, others, stalled))??;
    Ok(markdown(&rounds, others, stalled))
}

/// Runs both turns of each round. The results of a round are in the order without, with stalled connections.
fn turns(rounds: u32, others: u32, stalled: u32) -> Result<Vec<[Turn; 2]>> {
    let mut others: Vec<Client> = (0..others)
        .map(|_| Client::connect("the I/O server", CLUSTER))
        .collect::<Result<_>>()?;
    ask_all(&mut others)?;
    (0..rounds)
        .map(|round| {
            // The order of the turns alternates between rounds.
            if round % 2 == 0 {
                let without = ask_all(&mut others)?;
                Ok([without, beside(stalled, &mut others)?])
            } else {
                let with = beside(stalled, &mut others)?;
                Ok([ask_all(&mut others)?, with])
            }
        })
        .collect()
}

fn beside(stalled: u32, others: &mut [Client]) -> Result<Turn> {
    let streams = stall(stalled)?;
    let turn = ask_all(others)?;
    drop(streams);
    // The ends of the stalled connections must not disturb the next turn.
    std::thread::sleep(2 * LOOK);
    Ok(turn)
}

fn ask_all(clients: &mut [Client]) -> Result<Turn> {
    let mut times: Vec<Duration> = (clients.iter_mut())
        .map(|client| client.request(PAGE))
        .collect::<Result<_>>()?;
    times.sort();
    let at = |part| percentile(&times, part).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6);
    Ok(Turn {
        p50: at(0.5),
        p99: at(0.99),
    })
}

/// Opens stalled connections, and waits until each has got something and none gets more.
fn stall(count: u32) -> Result<Vec<TcpStream>> {
    let streams: Vec<TcpStream> = (0..count)
        .map(|_| {
            let mut stream = TcpStream::connect(CLUSTER)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(LARGE)?;
            Ok(stream)
        })
        .collect::<std::io::Result<_>>()
        .context("open connections that are to stand still")?;
    let begun = Instant::now();
    let mut seen = vec![0; MOST_UNREAD];
    let mut before = Vec::new();
    loop {
        let now: Vec<usize> = (streams.iter())
            .map(|stream| stream.peek(&mut seen))
            .collect::<std::io::Result<_>>()?;
        if now == before {
            return Ok(streams);
        }
        ensure!(begun.elapsed() < PATIENCE, "what nobody reads still grows");
        before = now;
        std::thread::sleep(LOOK);
    }
}

fn allow_files(wanted: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(wanted), hard)
        .with_context(|| format!("{wanted} open files are needed: raise `ulimit -Hn`"))
}

fn markdown(rounds: &[[Turn; 2]], others: u32, stalled: u32) -> String {
    let mut text = format!(
        "## Latency beside connections that stand still, 4 KB, µs\n\n\
         Virtual sockets: {others} connections, one request at a time; without and with {stalled} more, of which \
         nobody reads the answer. Medians of {} rounds.\n\n\
         | | without | with | with : without | goal |\n|---|--:|--:|--:|--:|\n",
        rounds.len()
    );
    let rows: [(&str, Of, &str); 2] =
        [("p50", |turn| turn.p50, ""), ("p99", |turn| turn.p99, GOAL)];
    for (name, of, goal) in rows {
        let median = |which: usize| Spread::of(rounds.iter().map(|round| of(&round[which]))).median;
        let ratios = rounds.iter().map(|round| of(&round[1]) / of(&round[0]));
        text += &format!(
            "| {name} | {:.1} | {:.1} | {} | {goal} |\n",
            median(0),
            median(1),
            Spread::of(ratios)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let turn = |p50, p99| Turn { p50, p99 };
        let rounds = [
            [turn(100.0, 200.0), turn(110.0, 200.0)],
            [turn(200.0, 400.0), turn(220.0, 800.0)],
        ];
        let text = markdown(&rounds, 9, 1);
        assert!(
            text.contains("| p50 | 150.0 | 165.0 | 1.10 (1.10–1.10) |"),
            "{text}"
        );
        assert!(
            text.contains("| p99 | 300.0 | 500.0 | 1.50 (1.00–2.00) |"),
            "{text}"
        );
    }
}
