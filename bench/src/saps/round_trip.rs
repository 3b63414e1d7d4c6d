//! Measures round trips (the paper's table 3): four bytes to a program and back, and a handshake, which is connect().

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::cluster::{CLIENTS, Cluster};
use super::system::{Round, Sender, System, TURNS, turns};
use crate::statistics::percentile;

/// The port of the echo program.
const PORT: u16 = 7;
/// The number of spells in a round. The systems take turns spell by spell.
const SPELLS: u32 = 5;
/// The numbers of a spell: round trips that are not counted, round trips that are counted, and handshakes.
const FIRST: u32 = 10;
const TRIPS: u32 = 200;
const HANDSHAKES: u32 = 40;

/// The times of round trips to the program and of handshakes.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    user: Vec<Duration>,
    tcp: Vec<Duration>,
}

pub(super) fn round(cluster: &Cluster) -> Result<Round<Times>> {
    let mut round = Round::<Times>::default();
    for _ in 0..SPELLS {
        let spells = turns(|turn| spell(cluster, turn))?;
        for (all, spell) in round.iter_mut().zip(spells) {
            all.user.extend(spell.user);
            all.tcp.extend(spell.tcp);
        }
    }
    Ok(round)
}

fn spell(cluster: &Cluster, turn: (Sender, System)) -> Result<Times> {
    cluster.use_sender(turn)?;
    let to = SocketAddr::new(turn.1.address().parse()?, PORT);
    let measure = || -> std::io::Result<Times> {
        let mut echo = TcpStream::connect(to)?;
        echo.set_nodelay(true)?;
        let trips = (0..FIRST + TRIPS).map(|_| timed(|| trip(&mut echo)));
        let user = trips.collect::<std::io::Result<Vec<_>>>()?;
        let handshakes = (0..HANDSHAKES).map(|_| timed(|| TcpStream::connect(to).map(drop)));
        Ok(Times {
            user: user[FIRST as usize..].to_vec(),
            tcp: handshakes.collect::<std::io::Result<_>>()?,
        })
    };
    let times = cluster.running()?.within(CLIENTS[0], measure)?;
    times.with_context(|| format!("round trips to {to}"))
}

fn trip(echo: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = *b"echo";
    echo.write_all(&bytes)?;
    echo.read_exact(&mut bytes)
}

fn timed(what: impl FnOnce() -> std::io::Result<()>) -> std::io::Result<Duration> {
    let begin = Instant::now();
    what()?;
    Ok(begin.elapsed())
}

pub(super) fn markdown(rounds: &[Round<Times>]) -> String {
    let mut text = String::from(
        "## Round trips without load, µs (table 3)\n\n\
         User: 4 bytes to a program and back. TCP: SYN to SYN-ACK, as connect() takes. In the paper, over Gigabit Ethernet, on average: user \
         213 and 173, TCP 96.6 and 134.8.\n\n\
         | sender | system | user: min | p50 | mean | p99 | TCP: min | p50 | mean | p99 |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (at, (sender, system)) in TURNS.into_iter().enumerate() {
        let all = |of: fn(&Times) -> &Vec<Duration>| {
            cells(
                rounds
                    .iter()
                    .flat_map(|round| of(&round[at]))
                    .copied()
                    .collect(),
            )
        };
        text += &format!(
            "| {} | {} | {} | {} |\n",
            sender.name(),
            system.name(),
            all(|times| &times.user),
            all(|times| &times.tcp)
        );
    }
    text
}

/// Table cells with the least, median, mean and 99th percentile, in microseconds.
fn cells(mut times: Vec<Duration>) -> String {
    times.sort();
    let mean = times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
    let at = |part| percentile(&times, part).map_or(f64::NAN, |time| time.as_secs_f64());
    [at(0.0), at(0.5), mean, at(0.99)]
        .map(|seconds| format!("{:.0}", seconds * 1e6))
        .join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sorted_before_they_are_told() {
        let times = [30, 10, 80].map(Duration::from_micros).to_vec();
        assert_eq!(cells(times), "10 | 30 | 40 | 80");
    }
}
