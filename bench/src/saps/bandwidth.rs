//! Measures the rate of one stream from a server to a client, by the stream's length (the paper's figure 6). Each
//! stream has a new connection, and counts from the request to the last byte.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::cluster::{CLIENTS, Cluster};
use super::connection::{Connection, Fetched};
use super::system::{Round, Sender, System, TURNS};
use crate::statistics::Spread;

/// The lengths of the streams, in kilobytes.
const SIZES: [u64; 6] = [4, 16, 64, 256, 1024, 4096];
/// How often each length is measured in a turn.
const TIMES: u32 = 5;

/// The rates in Mbit/s, by length.
pub(super) type Bursts = [Vec<f64>; SIZES.len()];

pub(super) fn turn(cluster: &Cluster, turn: (Sender, System)) -> Result<Bursts> {
    cluster.use_sender(turn)?;
    let measure = || {
        let mut bursts = Bursts::default();
        for _ in 0..TIMES {
            for (size, rates) in SIZES.into_iter().zip(&mut bursts) {
                rates.push(burst(turn.1, size << 10)?);
            }
        }
        Ok(bursts)
    };
    cluster.running()?.within(CLIENTS[0], measure)?
}

fn burst(system: System, bytes: u64) -> Result<f64> {
    let mut connection = Connection::connect(system.address())?;
    let begin = Instant::now();
    let fetched = connection.fetch(bytes, None)?;
    let time = begin.elapsed();
    ensure!(matches!(fetched, Fetched::Whole { .. }), "{fetched:?}");
    Ok(bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

pub(super) fn markdown(rounds: &[Round<Bursts>]) -> String {
    let sizes = SIZES.map(|size| format!("{size} KB")).join(" | ");
    let columns = SIZES.map(|_| "--:").join("|");
    let mut text = format!(
        "## One stream over a new connection, Mbit/s by its length: median (figure 6)\n\n\
         | sender | system | {sizes} |\n|---|---|{columns}|\n"
    );
    for (at, (sender, system)) in TURNS.into_iter().enumerate() {
        let cells: Vec<String> = (0..SIZES.len())
            .map(|size| {
                let all = rounds.iter().flat_map(|round| &round[at][size]);
                format!("{:.1}", Spread::of(all.copied()).median)
            })
            .collect();
        text += &format!(
            "| {} | {} | {} |\n",
            sender.name(),
            system.name(),
            cells.join(" | ")
        );
    }
    text
}
