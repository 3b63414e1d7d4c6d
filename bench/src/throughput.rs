//! Measures requests a second, and the processor time that a request takes. In every round each competitor has its
//! turn, one after the other, so that other load on the machine meets all of them. Ratios are taken within a round.

use anyhow::Result;

use crate::competitor::{Competitor, Each};
use crate::cpu::CpuTime;
use crate::lab::BenchLab;
use crate::options::{Load, Options};
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Pages, Work};

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

/// The results of one competitor's turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    measured: Measured,
    /// The processor time of the whole machine, in microseconds a request.
    cpu: f64,
}

/// The results of all rounds of one load.
#[derive(Clone, Debug)]
pub(crate) struct LoadResult {
    load: Load,
    rounds: Vec<Each<Turn>>,
}

/// Measures every load that was asked for.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<Vec<LoadResult>> {
    options
        .loads()
        .into_iter()
        .map(|load| {
            eprintln!("{}: {} rounds", load.name(), options.rounds);
            Each::try_new(|competitor| turn(lab, competitor, load.work(options)))?; // warms up
            let rounds = (0..options.rounds)
                .map(|round| {
                    let each = Each::try_new(|one| turn(lab, one, load.work(options)))?;
                    let rates = each.map(|turn| turn.measured.rate());
                    eprintln!(
                        "  {}: baton {:.0}, direct {:.0}, HAProxy {:.0} requests/s",
                        round + 1,
                        rates.baton,
                        rates.direct,
                        rates.haproxy
                    );
                    Ok(each)
                })
                .collect::<Result<_>>()?;
            Ok(LoadResult { load, rounds })
        })
        .collect()
}

fn turn(lab: &BenchLab, competitor: Competitor, work: Work) -> Result<Turn> {
    let before = CpuTime::now()?;
    let measured = wrk::run(lab, competitor, work)?;
    let cpu = CpuTime::now()?.micros_since(before) / measured.requests as f64;
    Ok(Turn { measured, cpu })
}

impl LoadResult {
    /// The processor time a request, in microseconds.
    fn cpu(&self, competitor: Competitor) -> Spread {
        Spread::of(self.rounds.iter().map(|round| round.of(competitor).cpu))
    }

    /// The processor time that baton takes more than direct access, in microseconds a request, within each round.
    fn cpu_beyond_direct(&self) -> Spread {
        Spread::of(
            self.rounds
                .iter()
                .map(|round| round.baton.cpu - round.direct.cpu),
        )
    }

    fn rate(&self, competitor: Competitor) -> Spread {
        Spread::of(
            self.rounds
                .iter()
                .map(|round| round.of(competitor).measured.rate()),
        )
    }

    fn baton_to(&self, other: Competitor) -> Spread {
        Spread::of(
            self.rounds
                .iter()
                .map(|round| round.baton.measured.rate() / round.of(other).measured.rate()),
        )
    }

    fn errors(&self, competitor: Competitor) -> u64 {
        self.rounds
            .iter()
            .map(|round| round.of(competitor).measured.errors())
            .sum()
    }
}

/// Tables of rates, of ratios beside their goals, and of errors.
pub(crate) fn markdown(loads: &[LoadResult]) -> String {
    let mut text = String::from(
        "## Requests a second (median of rounds), and ratios within a round: median (min–max)\n\n\
         | load | baton | direct | HAProxy | baton/HAProxy | goal | baton/direct | goal | errors: baton, direct, HAProxy |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for one in loads {
        let [baton, direct, haproxy] = Competitor::ALL.map(|who| one.rate(who).median);
        let [baton_errors, direct_errors, haproxy_errors] =
            Competitor::ALL.map(|who| one.errors(who));
        text += &format!(
            "| {} | {baton:.0} | {direct:.0} | {haproxy:.0} | {} | {} | {} | {} | {baton_errors}, {direct_errors}, {haproxy_errors} |\n",
            one.load.name(),
            one.baton_to(Competitor::HaProxy),
            goal(one.load.goal_against_haproxy()),
            one.baton_to(Competitor::Direct),
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
        let [baton, direct, haproxy] = Competitor::ALL.map(|one| load.cpu(one).median);
        text += &format!(
            "| {} | {baton:.1} | {direct:.1} | {haproxy:.1} | {:.1} |\n",
            load.load.name(),
            load.cpu_beyond_direct().median
        );
    }
    text
}

fn goal(least: Option<f64>) -> String {
    least.map_or("–".to_owned(), |least| format!("≥ {least}"))
}
