//! Measures how long a server is busy with redirecting a client: EOP against HTTP's 307 (Haungs et al., 2002, figure
//! 7).
//!
//! One redirector serves both kinds of clients on one port, over loopback, and sends them to a front with a server of
//! files. As in the paper, the time is taken at the redirector: from when the client has connected until the redirect
//! is written. The paper's client became slow with the size of what it downloaded. Here the client is slow on purpose,
//! by as many milliseconds as the file has KiB: it connects, waits, then sends its request. Rounds of both kinds take
//! turns.
//!
//! ```text
//! cargo run --release -p baton-redsocks --example redirect [-- ROUNDS]
//! ```

mod clients;
mod servers;

use std::io;
use std::time::Duration;

use baton_redsocks::front::Latency;

use clients::Kind;

const SIZES: [usize; 6] = [1, 2, 4, 8, 16, 32];
const CLIENTS: [usize; 5] = [1, 2, 4, 8, 16];

/// Averages in milliseconds: a row for each file size, a column for each number of clients.
type Table = Vec<Vec<f64>>;

#[tokio::main]
async fn main() -> io::Result<()> {
    let rounds = (std::env::args().nth(1)).and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(20);
    for slow in [false, true] {
        let delay = |size: usize| Duration::from_millis(if slow { size as u64 } else { 0 });
        let mut tables = [Table::new(), Table::new()];
        for size in SIZES {
            let mut lines = [Vec::new(), Vec::new()];
            for count in CLIENTS {
                let cell = cell(size, count, delay(size), rounds).await?;
                for (line, average) in lines.iter_mut().zip(cell) {
                    line.push(average);
                }
            }
            for (table, line) in tables.iter_mut().zip(lines) {
                table.push(line);
            }
        }
        let who = if slow {
            "a slow client, 1 ms a KiB"
        } else {
            "a fast client"
        };
        for (kind, table) in ["HTTP 307", "EOP"].iter().zip(&tables) {
            println!("{kind}, {who}: server redirection latency in ms");
            show(table);
        }
        judge(who, &tables);
    }
    Ok(())
}

/// Measures the averages of HTTP and of EOP, in milliseconds.
async fn cell(size: usize, count: usize, delay: Duration, rounds: usize) -> io::Result<[f64; 2]> {
    let servers = servers::start(size << 10).await?;
    for round in 0..rounds {
        // The kind that goes first changes with each round.
        let kinds = [Kind::Http, Kind::Eop];
        for turn in 0..2 {
            clients::run(kinds[(round + turn) % 2], &servers, count, delay).await?;
        }
    }
    let counters = &servers.counters;
    let sum = (rounds * count) as u64;
    assert_eq!(counters.located.count(), sum, "each HTTP client once");
    assert_eq!(counters.redirected.count(), sum, "each EOP client once");
    Ok([average(&counters.located), average(&counters.redirected)])
}

fn average(latency: &Latency) -> f64 {
    latency.total().as_secs_f64() * 1e3 / latency.count() as f64
}

fn show(table: &Table) {
    print!("   KiB");
    for count in CLIENTS {
        print!("  {count:>2} clients");
    }
    println!();
    for (size, line) in SIZES.iter().zip(table) {
        print!("  {size:4}");
        for average in line {
            print!("  {average:10.3}");
        }
        println!();
    }
}

/// Prints the paper's claims beside what was measured.
fn judge(who: &str, [http, eop]: &[Table; 2]) {
    let mean = |table: &Table, size: usize| {
        let line = &table[size];
        line.iter().sum::<f64>() / line.len() as f64
    };
    let last = SIZES.len() - 1;
    let grows = |table: &Table| mean(table, last) / mean(table, 0);
    println!("{who}, 32 KiB against 1 KiB (paper: HTTP grows with the file, RedSocks does not):");
    println!(
        "  HTTP {:.2} times, EOP {:.2} times",
        grows(http),
        grows(eop)
    );
    let all = |table: &Table| {
        let sum: f64 = (0..SIZES.len()).map(|size| mean(table, size)).sum();
        sum / SIZES.len() as f64
    };
    println!(
        "  mean of all: HTTP {:.3} ms, EOP {:.3} ms (paper: RedSocks below HTTP)\n",
        all(http),
        all(eop)
    );
}
