//! Measures what redirectable sockets cost if nothing is redirected, and what a redirect saves against closing and
//! connecting by hand. It runs over loopback, with clients and servers in threads of one process. Plain and EOP take
//! turns in short rounds, so that other load of the machine affects both.
//!
//! ```text
//! taskset -c 1 cargo run --release -p eop --example overhead [-- [copied] [ROUNDS]]
//! ```
//!
//! Messages are in buffers with room for the header ([`Message`]). With `copied` as the first word they are slices,
//! which are copied behind the header up to 12 KiB, and sent in two pieces beyond that.
//!
//! A ratio is the median of the ratios of neighbouring rounds: once of the time that passed, once of the processor
//! time that both ends took. The second is steadier on a machine that does other things too.

mod plain;
mod servers;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use eop::{Error, Message, Options, connect};

use plain::Plain;

const SIZES: [usize; 8] = [100, 400, 1000, 2000, 4000, 8000, 16_000, 32_000];
const TRIPS: u32 = 60;
const PAIRS: u32 = 12;

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1).peekable();
    let copied = words.next_if(|word| word == "copied").is_some();
    let rounds = words.next().and_then(|count| count.parse().ok());
    let rounds: usize = rounds.unwrap_or(500);
    println!("one request and answer on a standing connection: EOP / plain TCP");
    for nodelay in [false, true] {
        let name = if nodelay { "off" } else { "on" };
        println!(
            "  Nagle {name}\n   bytes  plain us   time (quartiles)          processor (quartiles)"
        );
        let mut all = Vec::new();
        for size in SIZES {
            let ratios = trips(size, nodelay, copied, rounds)?;
            all.push(ratios.show(size));
        }
        show_mean(&all);
    }
    println!(
        "two requests at two servers: redirect with the first answer / close and connect by hand"
    );
    println!("   bytes  plain us   time (quartiles)          processor (quartiles)");
    let mut all = Vec::new();
    for size in SIZES {
        all.push(pairs(size, rounds)?.show(size));
    }
    show_mean(&all);
    Ok(())
}

/// The cost of both ends together, in seconds.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: f64,
    processor: f64,
}

struct Stopwatch(Instant, Duration);

impl Stopwatch {
    fn start() -> Self {
        Self(Instant::now(), processor_time())
    }

    fn stop(&self) -> Cost {
        Cost {
            time: self.0.elapsed().as_secs_f64(),
            processor: processor_time().saturating_sub(self.1).as_secs_f64(),
        }
    }
}

fn processor_time() -> Duration {
    // Every Linux has this clock.
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Medians and quartiles of the ratios.
struct Ratios {
    trips: u32,
    plain: Vec<f64>,
    time: Vec<f64>,
    processor: Vec<f64>,
}

impl Ratios {
    fn show(mut self, size: usize) -> [f64; 2] {
        let [_, plain, _] = quartiles(&mut self.plain);
        print!("  {size:6}  {:8.2}", plain * 1e6 / f64::from(self.trips));
        let medians = [&mut self.time, &mut self.processor].map(|ratios| {
            let [low, median, high] = quartiles(ratios);
            print!("   {median:.4} ({low:.4} {high:.4})");
            median
        });
        println!();
        let _ = io::stdout().flush();
        medians
    }
}

fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn show_mean(all: &[[f64; 2]]) {
    let mean = |which: usize| {
        let sum: f64 = all.iter().map(|medians| medians[which]).sum();
        (sum / all.len() as f64 - 1.0) * 100.0
    };
    println!(
        "    mean of all sizes: time {:+.2} %, processor {:+.2} %",
        mean(0),
        mean(1)
    );
}

fn options(nodelay: bool) -> Options {
    Options {
        nodelay,
        ..Options::default()
    }
}

/// Runs rounds of both kinds and compares neighbours. The kind that goes first changes with each round.
fn compare(
    rounds: usize,
    trips: u32,
    mut plain: impl FnMut() -> Result<Cost, Error>,
    mut eop: impl FnMut() -> Result<Cost, Error>,
) -> Result<Ratios, Error> {
    plain()?;
    eop()?;
    let (mut times, mut time, mut processor) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let (one, other) = if round % 2 == 0 {
            let one = plain()?;
            (one, eop()?)
        } else {
            let other = eop()?;
            (plain()?, other)
        };
        times.push(one.time);
        time.push(other.time / one.time);
        processor.push(other.processor / one.processor);
    }
    Ok(Ratios {
        trips,
        plain: times,
        time,
        processor,
    })
}

fn trips(size: usize, nodelay: bool, copied: bool, rounds: usize) -> Result<Ratios, Error> {
    let mut plain = Plain::connect(servers::plain(size, nodelay), size, nodelay);
    let mut socket = connect(servers::eop(size, nodelay, copied), options(nodelay))?;
    let request = vec![b'x'; size];
    let mut message = Message::from(&request[..]);
    compare(
        rounds,
        TRIPS,
        || {
            let watch = Stopwatch::start();
            for _ in 0..TRIPS {
                plain.trip(&request);
            }
            Ok(watch.stop())
        },
        || {
            let watch = Stopwatch::start();
            for _ in 0..TRIPS {
                if copied {
                    socket.send(&request)?;
                } else {
                    socket.send_message(&mut message)?;
                }
                let answer = socket.recv()?.map(<[u8]>::len);
                assert_eq!(answer, Some(size));
            }
            Ok(watch.stop())
        },
    )
}

fn pairs(size: usize, rounds: usize) -> Result<Ratios, Error> {
    let by_hand = [servers::plain(size, true), servers::plain(size, true)];
    let second = servers::eop(size, true, true);
    let first = servers::redirecting(size, second);
    let request = vec![b'x'; size];
    compare(
        rounds,
        PAIRS,
        || {
            let watch = Stopwatch::start();
            for _ in 0..PAIRS {
                let mut connection = Plain::connect(by_hand[0], size, true);
                connection.trip(&request);
                drop(connection);
                let mut connection = Plain::connect(by_hand[1], size, true);
                connection.trip(&request);
            }
            Ok(watch.stop())
        },
        || {
            let watch = Stopwatch::start();
            for _ in 0..PAIRS {
                redirected(first, &request)?;
            }
            Ok(watch.stop())
        },
    )
}

fn redirected(first: SocketAddr, request: &[u8]) -> Result<(), Error> {
    let mut socket = connect(first, options(true))?;
    for _ in 0..2 {
        socket.send(request)?;
        assert_eq!(socket.recv()?.map(<[u8]>::len), Some(request.len()));
    }
    Ok(())
}
