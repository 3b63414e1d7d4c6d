//! Measures requests a second, and the processor time that a request takes.

use anyhow::Result;

use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::options::{Load, Options};
use crate::rounds::Rounds;
use crate::wrk::{Pages, Target, Work};

/// The number of wrk's threads: one for each server.
const THREADS: u32 = 3;

impl Load {
    /// The load as work for wrk.
    pub fn work(self, options: &Options) -> Work {
        let (path, close) = match self {
            Load::FourKilobytes => ("/4k", false),
            Load::SixtyFourKilobytes => ("/64k", false),
            Load::Megabyte => ("/1m", false),
            Load::FourKilobytesClose => ("/4k", true),
        };
        Work {
            pages: Pages::One(path),
            close,
            connections: options.connections,
            threads: THREADS,
            time: options.turn,
        }
    }

    /// The least rate that baton should reach, as a multiple of HAProxy's rate.
    fn goal_against_haproxy(self) -> Option<f64> {
        match self {
            Load::FourKilobytes => Some(1.8),
            Load::SixtyFourKilobytes => Some(4.0),
            Load::Megabyte | Load::FourKilobytesClose => None,
        }
    }

    /// The least rate that baton should reach, as a part of the rate of direct access.
    fn goal_against_direct(self) -> Option<f64> {
        match self {
            Load::FourKilobytes | Load::SixtyFourKilobytes => Some(0.95),
            Load::Megabyte | Load::FourKilobytesClose => None,
        }
    }
}

/// The results of one load.
#[derive(Clone, Debug)]
pub(crate) struct LoadResult {
    load: Load,
    rounds: Rounds,
}

/// Measures every load that was asked for.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<Vec<LoadResult>> {
    let results = options.loads().into_iter().map(|load| {
        eprintln!("{}: {} rounds", load.name(), options.rounds);
        let rounds = Rounds::measure(lab, options.rounds, Target::from, load.work(options))?;
        Ok(LoadResult { load, rounds })
    });
    results.collect()
}

/// Tables of rates, of ratios beside their goals, and of errors.
pub(crate) fn markdown(loads: &[LoadResult]) -> String {
    let mut text = String::from(
        "## Requests a second (median of rounds), and ratios within a round: median (min–max)\n\n\
         | load | baton | direct | HAProxy | baton/HAProxy | goal | baton/direct | goal | errors: baton, direct, HAProxy |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for one in loads {
        let [baton, direct, haproxy] = Competitor::ALL.map(|who| one.rounds.rate(who).median);
        let [baton_errors, direct_errors, haproxy_errors] =
            Competitor::ALL.map(|who| one.rounds.errors(who));
        text += &format!(
            "| {} | {baton:.0} | {direct:.0} | {haproxy:.0} | {} | {} | {} | {} | {baton_errors}, {direct_errors}, {haproxy_errors} |\n",
            one.load.name(),
            one.rounds.baton_to(Competitor::HaProxy),
            goal(one.load.goal_against_haproxy()),
            one.rounds.baton_to(Competitor::Direct),
            goal(one.load.goal_against_direct()),
        );
    }
    text
}

/// A table of the processor time a request, for every load.
pub(crate) fn cpu_markdown(loads: &[LoadResult]) -> String {
    let mut text = String::from(
        "## Processor time of the whole machine, µs a request (median of rounds)\n\n\
         | load | baton | direct | HAProxy | baton − direct |\n|---|--:|--:|--:|--:|\n",
    );
    for load in loads {
        let [baton, direct, haproxy] = Competitor::ALL.map(|one| load.rounds.cpu(one).median);
        text += &format!(
            "| {} | {baton:.1} | {direct:.1} | {haproxy:.1} | {:.1} |\n",
            load.load.name(),
            load.rounds.cpu_beyond_direct().median
        );
    }
    text
}

fn goal(least: Option<f64>) -> String {
    least.map_or("–".to_owned(), |least| format!("≥ {least}"))
}
