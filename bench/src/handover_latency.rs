//! Measures what a handover adds to a request: 4 KB, one request after the other, of two servers in turn. The ways
//! take turns in short spells, so that all meet the same machine, and each bears the cost of what it leaves behind (a
//! handover: the end of the old owner's socket).

use std::time::Duration;

use anyhow::Result;

use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::latency::{Client, percentiles};
use crate::options::Options;
use crate::statistics::percentile;
use crate::wrk::Target;

/// The pages, each of another server.
const PAGES: [&str; 2] = ["/ds1/4k", "/ds2/4k"];
/// The number of requests of each way that are not counted at the beginning.
const WARM_UP: u32 = 100;
/// The number of requests that are not counted at the beginning of each spell, while the caches are still another
/// way's.
const FIRST: u32 = 10;
/// The number of requests of one spell that are counted.
const SPELL: u32 = 100;

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    /// What the heading calls it.
    pub name: &'static str,
    /// The targets of the competitors. HAProxy routes there by path.
    pub target: fn(Competitor) -> Target,
    /// The most that a handover should add, in microseconds.
    pub goal: &'static str,
}

/// Handovers of plain HTTP, in the lab of bench/lab.toml.
pub(crate) const HTTP: Subject = Subject {
    name: "Latency of a handover",
    target: |competitor| match competitor {
        Competitor::HaProxy => Target::HAPROXY_ROUTING,
        other => other.into(),
    },
    goal: "≤ 10",
};

/// A way to the two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Over one connection, which each request moves.
    Moving,
    /// Over two connections, one for each page.
    Staying,
    /// Over one connection to one server, for the page of that server only.
    Alone,
    /// Over one connection to HAProxy, which routes by path.
    HaProxy,
    /// Over a connection to each server, without anything in between.
    Direct,
}

/// The connections of a way, and how long its requests took.
struct Runner {
    way: Way,
    /// One connection for both pages, or one for each.
    clients: Vec<Client>,
    times: Vec<Duration>,
}

/// Measures all ways, and returns the report in Markdown.
pub(crate) fn measure(lab: &BenchLab, options: &Options, subject: Subject) -> Result<String> {
    eprintln!("{}: {} requests each", subject.name, options.requests);
    let before = lab.counter("cs_moved_on")?;
    let running = lab.running()?;
    let runners = running.within("client", || requests(options.requests, subject.target))??;
    Ok(markdown(
        subject,
        &runners,
        lab.counter("cs_moved_on")? - before,
    ))
}

fn requests(count: u32, target: fn(Competitor) -> Target) -> Result<Vec<Runner>> {
    let mut runners: Vec<Runner> = Way::ALL
        .into_iter()
        .map(|way| Runner::begin(way, target))
        .collect::<Result<_>>()?;
    for runner in &mut runners {
        runner.spell(WARM_UP, 0)?;
    }
    let mut left = count;
    while left > 0 {
        let counted = left.min(SPELL);
        for runner in &mut runners {
            runner.spell(FIRST, counted)?;
        }
        left -= counted;
    }
    for runner in &mut runners {
        runner.times.sort();
    }
    Ok(runners)
}

impl Runner {
    fn begin(way: Way, target: fn(Competitor) -> Target) -> Result<Runner> {
        let (competitor, connections) = match way {
            Way::Moving | Way::Alone => (Competitor::Baton, 1),
            Way::Staying => (Competitor::Baton, PAGES.len()),
            Way::HaProxy => (Competitor::HaProxy, 1),
            Way::Direct => (Competitor::Direct, PAGES.len()),
        };
        let target = target(competitor);
        let connect = |turn| Client::connect_to(way.name(), target, turn);
        Ok(Runner {
            way,
            clients: (0..connections).map(connect).collect::<Result<_>>()?,
            times: Vec::new(),
        })
    }

    /// Sends requests one after the other, of which only the last `counted` are counted.
    fn spell(&mut self, uncounted: u32, counted: u32) -> Result<()> {
        for number in 0..uncounted + counted {
            let time = self.request(number as usize)?;
            if number >= uncounted {
                self.times.push(time);
            }
        }
        Ok(())
    }

    fn request(&mut self, number: usize) -> Result<Duration> {
        let client = number % self.clients.len();
        let page = match self.way {
            Way::Alone => PAGES[0],
            _ => PAGES[number % PAGES.len()],
        };
        self.clients[client].request(page)
    }

    /// The median in microseconds; NaN if there was no request.
    fn median(&self) -> f64 {
        percentile(&self.times, 0.5).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    }
}

impl Way {
    /// All ways, in the order of their turns. The others are compared with the first one.
    const ALL: [Way; 5] = [
        Way::Moving,
        Way::Staying,
        Way::Alone,
        Way::HaProxy,
        Way::Direct,
    ];

    fn name(self) -> &'static str {
        match self {
            Way::Moving => "moving",
            Way::Staying => "staying",
            Way::Alone => "staying, one server",
            Way::HaProxy => "HAProxy",
            Way::Direct => "direct",
        }
    }

    /// The goal for what moving may take longer than this way, in microseconds, if it should add at most `most`.
    fn goal(self, most: &'static str) -> &'static str {
        match self {
            Way::Moving | Way::Direct => "–",
            Way::Staying | Way::Alone => most,
            Way::HaProxy => "< 0",
        }
    }
}

fn markdown(subject: Subject, runners: &[Runner], handovers: u64) -> String {
    let count = runners.first().map_or(0, |runner| runner.times.len());
    let mut text = format!(
        "## {}: one request at a time, 4 KB, µs ({count} requests each, {handovers} handovers)\n\n\
         | | p50 | p90 | p99 | moving takes more, p50 | goal |\n|---|--:|--:|--:|--:|--:|\n",
        subject.name
    );
    let moving = runners.first().map_or(f64::NAN, Runner::median);
    for runner in runners {
        let more = match runner.way {
            Way::Moving => "–".to_owned(),
            _ => format!("{:+.1}", moving - runner.median()),
        };
        text += &format!(
            "| {} | {} | {more} | {} |\n",
            runner.way.name(),
            percentiles(&runner.times),
            runner.way.goal(subject.goal)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_compared_with_moving() {
        let runner = |way, micros| Runner {
            way,
            clients: Vec::new(),
            times: vec![Duration::from_micros(micros)],
        };
        let runners = [
            runner(Way::Moving, 50),
            runner(Way::Staying, 42),
            runner(Way::HaProxy, 90),
        ];
        let text = markdown(HTTP, &runners, 1);
        assert!(
            text.contains("| staying | 42.0 | 42.0 | 42.0 | +8.0 | ≤ 10 |"),
            "{text}"
        );
        assert!(
            text.contains("| HAProxy | 90.0 | 90.0 | 90.0 | -40.0 | < 0 |"),
            "{text}"
        );
    }
}
