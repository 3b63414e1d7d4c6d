//! Measures what moving costs: the same pages of two servers over connections that are handed over to and fro, over
//! connections that stay, and through HAProxy, which routes by the same paths. The three take turns, like the other
//! loads.

use anyhow::Result;

use crate::lab::BenchLab;
use crate::options::Options;
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Pages, Target, Work};

/// The pages, and the least rate that moving should reach, as a multiple of HAProxy's rate.
const SIZES: [(&str, [&str; 2], f64); 3] = [
    ("4 KB", ["/ds1/4k", "/ds2/4k"], 2.0),
    ("64 KB", ["/ds1/64k", "/ds2/64k"], 2.5),
    ("1 MB", ["/ds1/1m", "/ds2/1m"], 6.0),
];
/// The least rate that moving should reach, as a part of the rate without a handover.
const GOAL_STAYING: f64 = 0.85;
/// One thread for each page, where each page has connections of its own.
const THREADS: u32 = 2;

/// The three turns of a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    moving: Measured,
    staying: Measured,
    haproxy: Measured,
}

/// Measures both sizes, and returns the report in Markdown.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<String> {
    let mut text = String::from(
        "## Requests a second where connections move between two servers, and where they stay\n\n\
         | page | moving | staying | HAProxy | moving/staying | goal | moving/HAProxy | goal | errors: moving, staying, HAProxy |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for (name, pages, goal_haproxy) in SIZES {
        eprintln!("{name}, moving: {} rounds", options.rounds);
        round(lab, options, pages)?; // warms up
        let rounds: Vec<Round> = (0..options.rounds)
            .map(|_| round(lab, options, pages))
            .collect::<Result<_>>()?;
        let rate = |of: fn(&Round) -> Measured| {
            Spread::of(rounds.iter().map(|round| of(round).rate())).median
        };
        let ratio = |of: fn(&Round) -> Measured| {
            Spread::of(
                rounds
                    .iter()
                    .map(|round| round.moving.rate() / of(round).rate()),
            )
        };
        let errors =
            |of: fn(&Round) -> Measured| -> u64 { rounds.iter().map(|r| of(r).errors()).sum() };
        text += &format!(
            "| {name} | {:.0} | {:.0} | {:.0} | {} | ≥ {GOAL_STAYING} | {} | ≥ {goal_haproxy} | {}, {}, {} |\n",
            rate(|r| r.moving),
            rate(|r| r.staying),
            rate(|r| r.haproxy),
            ratio(|r| r.staying),
            ratio(|r| r.haproxy),
            errors(|r| r.moving),
            errors(|r| r.staying),
            errors(|r| r.haproxy),
        );
    }
    Ok(text)
}

fn round(lab: &BenchLab, options: &Options, pages: [&'static str; 2]) -> Result<Round> {
    let work = |each_thread: bool| Work {
        pages: if each_thread {
            Pages::OneAThread(pages)
        } else {
            Pages::InTurn(pages)
        },
        close: false,
        connections: options.connections / THREADS * THREADS,
        threads: THREADS,
        time: options.turn,
    };
    Ok(Round {
        moving: wrk::run(lab, Target::BATON, work(false))?,
        staying: wrk::run(lab, Target::BATON, work(true))?,
        haproxy: wrk::run(lab, Target::HAPROXY_ROUTING, work(false))?,
    })
}
