//! Measures a support site with more sessions than the bottleneck can carry (the paper's tables 5 and 6).

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::cluster::{CLIENTS, Cluster};
use super::mix::SCALE;
use super::session::{self, Counted, Tally};
use super::system::{Round, Sender, System, TURNS};
use super::usage::{Meters, Usage};
use crate::statistics::{Spread, percentile};

const WARM_UP: Duration = Duration::from_secs(15);
const COUNTED: Duration = Duration::from_secs(15);
/// The limits TimeGood and TimeTolerable, which are 3 and 5 seconds before [`SCALE`].
const GOOD: Duration = Duration::from_millis(3000 / SCALE);
const TOLERABLE: Duration = Duration::from_millis(5000 / SCALE);
/// TimeGood without the scale, because the kernel's own times are not scaled.
const UNSCALED: Duration = Duration::from_secs(3);

/// The least that SAPS should reach, as multiples of what the Virtual Server reaches.
const GOAL_REQUESTS: f64 = 1.1;
const GOAL_GOOD: f64 = 1.3;
/// The most retransmissions that SAPS should have, in percent of those of the Virtual Server.
const GOAL_RETRANSMISSIONS: f64 = 1.0;

/// The results of one system's turn.
#[derive(Clone, Debug)]
pub(super) struct Site {
    tally: Tally,
    pub usage: Usage,
}

pub(super) fn turn(
    cluster: &Cluster,
    turn: (Sender, System),
    (users, round): (u32, u32),
) -> Result<Site> {
    cluster.use_sender(turn)?;
    let system = turn.1;
    let from = Instant::now() + WARM_UP;
    let until = from + COUNTED;
    let counted = Counted { from, until };
    let (tally, usage) = thread::scope(|scope| {
        let clients: Vec<_> = (0..)
            .zip(CLIENTS)
            .map(|(number, client)| {
                scope.spawn(move || {
                    // The seeds are the same for each turn of a round, so that the sessions are the same.
                    let share = (number..users).step_by(CLIENTS.len());
                    let seeds = share.map(|user| u64::from(round) << 32 | u64::from(user));
                    let live = || sessions(system, seeds, counted);
                    cluster.running()?.within(client, live)?
                })
            })
            .collect();
        thread::sleep(from.saturating_duration_since(Instant::now()));
        let before = Meters::read(cluster, system)?;
        thread::sleep(until.saturating_duration_since(Instant::now()));
        let usage = Meters::read(cluster, system)?.since(&before);
        let mut tally = Tally::default();
        for client in clients {
            tally += client.join().map_err(|_| anyhow!("a client panicked"))??;
        }
        Ok::<_, anyhow::Error>((tally, usage))
    })?;
    if let Some(why) = &tally.why {
        eprintln!(
            "  {}, {}: {} errors: {why}",
            turn.0.name(),
            system.name(),
            tally.errors
        );
    }
    Ok(Site { tally, usage })
}

/// Runs a part of all sessions, inside one client.
fn sessions(system: System, seeds: impl Iterator<Item = u64>, counted: Counted) -> Result<Tally> {
    let mut all = Tally::default();
    thread::scope(|scope| {
        let users: Vec<_> = seeds
            .map(|seed| scope.spawn(move || session::run(system.address(), seed, counted)))
            .collect();
        for user in users {
            all += user.join().map_err(|_| anyhow!("a session panicked"))?;
        }
        Ok(all)
    })
}

impl Site {
    /// The number of answered requests.
    fn requests(&self) -> f64 {
        self.tally.times.len() as f64
    }

    /// The number of answered requests that took no longer than `limit`.
    fn within(&self, limit: Duration) -> f64 {
        self.tally
            .times
            .iter()
            .filter(|time| **time <= limit)
            .count() as f64
    }
}

pub(super) fn markdown(rounds: &[Round<Site>], users: u32) -> String {
    let mut text = format!(
        "## A support site, {users} sessions (table 5)\n\n\
         Requests that ended in {} s, after {} s that are not counted; sums of all rounds. Good within {} ms, tolerable \
         within {} ms: the paper's 3 s and 5 s, as sizes and users' thinking are a tenth too. In the paper, of 251.7 and \
         234.8 requests/s, 88.4 % and 74.2 % were good, 97.7 % and 93.2 % tolerable, and 0 and 15 failed.\n\n\
         | sender | system | requests/s | good | tolerable | within {} s | p50, ms | p90, ms | p99, ms | unfinished | errors |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        COUNTED.as_secs(),
        WARM_UP.as_secs(),
        GOOD.as_millis(),
        TOLERABLE.as_millis(),
        UNSCALED.as_secs(),
    );
    for (at, (sender, system)) in TURNS.into_iter().enumerate() {
        let sites = || rounds.iter().map(|round| &round[at]);
        let requests: f64 = sites().map(Site::requests).sum();
        let part = |limit| 100.0 * sites().map(|site| site.within(limit)).sum::<f64>() / requests;
        let mut times: Vec<Duration> = sites().flat_map(|site| site.tally.times.clone()).collect();
        times.sort();
        let ms = |part| percentile(&times, part).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3);
        text += &format!(
            "| {} | {} | {:.1} | {:.1} % | {:.1} % | {:.1} % | {:.0} | {:.0} | {:.0} | {} | {} |\n",
            sender.name(),
            system.name(),
            requests / COUNTED.as_secs_f64() / rounds.len() as f64,
            part(GOOD),
            part(TOLERABLE),
            part(UNSCALED),
            ms(0.5),
            ms(0.9),
            ms(0.99),
            sites().map(|site| site.tally.unfinished).sum::<u64>(),
            sites().map(|site| site.tally.errors).sum::<u64>(),
        );
    }
    text += "\n| sender | SAPS/Virtual Server: requests | goal | good requests | goal | retransmissions | goal | SAPS's errors | goal |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for (at, sender) in (0..).step_by(System::ALL.len()).zip(Sender::ALL) {
        let ratio = |of: &dyn Fn(&Site) -> f64| {
            Spread::of(
                rounds
                    .iter()
                    .map(|round| of(&round[at]) / of(&round[at + 1])),
            )
        };
        let retransmissions = Spread::of(rounds.iter().map(|round| {
            let [ours, theirs] = [at, at + 1].map(|at| round[at].usage.retransmitted);
            100.0 * ours / theirs
        }));
        let percent = |of: Spread| format!("{:.3} % ({:.3}–{:.3})", of.median, of.min, of.max);
        text += &format!(
            "| {} | {} | ≥ {GOAL_REQUESTS:.2} | {} | ≥ {GOAL_GOOD} | {} | ≤ {GOAL_RETRANSMISSIONS} % | {} | 0 |\n",
            sender.name(),
            ratio(&Site::requests),
            ratio(&|site| site.within(GOOD)),
            percent(retransmissions),
            rounds
                .iter()
                .map(|round| round[at].tally.errors)
                .sum::<u64>(),
        );
    }
    text
}
