//! Measures four streams at the same time, from four servers to four clients (the paper's figure 7): the rate at the
//! bottleneck, every ten milliseconds.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use super::cluster::{CLIENTS, Cluster, sent_by};
use super::connection::{Connection, Fetched};
use super::system::{Round, Sender, System, TURNS};
use crate::statistics::{Spread, percentile};

const BIN: Duration = Duration::from_millis(10);
/// How long the streams run before anything is counted, and how long they are counted after that.
const WARM_UP: Duration = Duration::from_millis(500);
const COUNTED: Duration = Duration::from_secs(3);
/// A number of bytes that is larger than the bottleneck carries in that time.
const ENDLESS: u64 = 200 << 20;
/// How often connections are made anew until each has a server of its own.
const TRIES: u32 = 50;

#[derive(Clone, Debug)]
pub(super) struct Streams {
    /// The rate of each bin, in Mbit/s.
    bins: Vec<f64>,
    /// The bytes of the stream with the fewest, divided by those of the stream with the most.
    fairness: f64,
}

pub(super) fn turn(cluster: &Cluster, turn: (Sender, System)) -> Result<Streams> {
    cluster.use_sender(turn)?;
    let mut connections = connect(cluster, turn.1)?;
    let counted_from = Instant::now() + WARM_UP;
    let until = counted_from + COUNTED;
    let (bins, bytes) = thread::scope(|scope| {
        let sampler = scope.spawn(|| bins(cluster, counted_from, until));
        let streams: Vec<_> = (connections.iter_mut())
            .map(|connection| scope.spawn(move || connection.fetch(ENDLESS, Some(until))))
            .collect();
        let bytes = streams.into_iter().map(|stream| {
            match stream.join().map_err(|_| anyhow!("a client panicked"))?? {
                Fetched::Left { bytes } => Ok(bytes),
                Fetched::Whole { .. } => bail!("{ENDLESS} bytes have an end"),
            }
        });
        let bytes = bytes.collect::<Result<Vec<u64>>>()?;
        let bins = sampler
            .join()
            .map_err(|_| anyhow!("the sampler panicked"))??;
        Ok::<_, anyhow::Error>((bins, bytes))
    })?;
    let least = bytes.iter().min().copied().unwrap_or(0);
    let most = bytes.iter().max().copied().unwrap_or(0);
    Ok(Streams {
        bins,
        fairness: least as f64 / most as f64,
    })
}

/// Makes one connection from each client, each to another server.
fn connect(cluster: &Cluster, system: System) -> Result<Vec<Connection>> {
    for _ in 0..TRIES {
        let mut servers = BTreeSet::new();
        let mut connections = Vec::new();
        for client in CLIENTS {
            let first_byte = || {
                let mut connection = Connection::connect(system.address())?;
                let fetched = connection.fetch(1, None)?;
                Ok::<_, anyhow::Error>((connection, fetched))
            };
            let (connection, fetched) = cluster.running()?.within(client, first_byte)??;
            match fetched {
                Fetched::Whole { by } => servers.insert(by),
                Fetched::Left { .. } => bail!("{client} left before the first byte"),
            };
            connections.push(connection);
        }
        if servers.len() == CLIENTS.len() {
            return Ok(connections);
        }
    }
    bail!(
        "{} does not spread {} connections in turn",
        system.name(),
        CLIENTS.len()
    )
}

/// The rates where the router sends to the clients, in Mbit/s for each bin.
fn bins(cluster: &Cluster, from: Instant, until: Instant) -> Result<Vec<f64>> {
    let sample = || {
        let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        let bytes = sent_by(&text, "eth1").context("the router has no eth1")?;
        Ok::<_, anyhow::Error>((Instant::now(), bytes))
    };
    cluster.running()?.within("router", || {
        thread::sleep(from.saturating_duration_since(Instant::now()));
        let (mut bins, mut last) = (Vec::new(), sample()?);
        while last.0 < until {
            thread::sleep((last.0 + BIN).saturating_duration_since(Instant::now()));
            let next = sample()?;
            let seconds = (next.0 - last.0).as_secs_f64();
            bins.push((next.1 - last.1) as f64 * 8.0 / seconds / 1e6);
            last = next;
        }
        ensure!(!bins.is_empty(), "no time to look at the bottleneck");
        Ok(bins)
    })?
}

pub(super) fn markdown(rounds: &[Round<Streams>]) -> String {
    let mut text = format!(
        "## Four streams from four servers to four clients, Mbit/s at the bottleneck in bins of {} ms (figure 7)\n\n\
         Slowest: bytes of the slowest stream as a part of the fastest one's, median of rounds.\n\n\
         | sender | system | mean | standard deviation | p1 | p10 | slowest |\n|---|---|--:|--:|--:|--:|--:|\n",
        BIN.as_millis()
    );
    for (at, (sender, system)) in TURNS.into_iter().enumerate() {
        let mut bins: Vec<f64> = (rounds.iter())
            .flat_map(|round| round[at].bins.clone())
            .collect();
        bins.sort_by(f64::total_cmp);
        let (mean, deviation) = moments(&bins);
        let low = |part| percentile(&bins, part).unwrap_or(f64::NAN);
        let fairness = Spread::of(rounds.iter().map(|round| round[at].fairness)).median;
        text += &format!(
            "| {} | {} | {mean:.1} | {deviation:.1} | {:.1} | {:.1} | {fairness:.2} |\n",
            sender.name(),
            system.name(),
            low(0.01),
            low(0.1),
        );
    }
    text
}

/// The mean and the standard deviation.
fn moments(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares = numbers
        .iter()
        .map(|number| (number - mean).powi(2))
        .sum::<f64>();
    (mean, (squares / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_from_the_mean() {
        assert_eq!(moments(&[1.0, 3.0, 1.0, 3.0]), (2.0, 1.0));
    }
}
