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
/// The most that a handover should add, in microseconds.
const GOAL: &str = "≤ 10";

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
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<String> {
    eprintln!("latency of a handover: {} requests each", options.requests);
    let before = lab.counter("cs_moved_on")?;
    let running = lab.running()?;
    let runners = running.within("client", || requests(options.requests))??;
    Ok(markdown(&runners, lab.counter("cs_moved_on")? - before))
}

fn requests(count: u32) -> Result<Vec<Runner>> {
    let mut runners: Vec<Runner> = Way::ALL
        .into_iter()
        .map(Runner::begin)
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
    fn begin(way: Way) -> Result<Runner> {
        let connect = |to| Client::connect(way.name(), to);
        let clients = match way {
            Way::Moving | Way::Alone => vec![connect(Target::BATON.first())?],
            Way::Staying => vec![
                connect(Target::BATON.first())?,
                connect(Target::BATON.first())?,
            ],
            Way::HaProxy => vec![connect(Target::HAPROXY_ROUTING.first())?],
            Way::Direct => {
                let servers = Competitor::Direct.addresses().iter().take(PAGES.len());
                servers
                    .map(|address| connect((address, 80)))
                    .collect::<Result<_>>()?
            }
        };
        Ok(Runner {
            way,
            clients,
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

    /// The goal for what moving may take longer than this way, in microseconds.
    fn goal(self) -> &'static str {
        match self {
            Way::Moving | Way::Direct => "–",
            Way::Staying | Way::Alone => GOAL,
            Way::HaProxy => "< 0",
        }
    }
}

fn markdown(runners: &[Runner], handovers: u64) -> String {
    let count = runners.first().map_or(0, |runner| runner.times.len());
    let mut text = format!(
        "## Latency of a handover: one request at a time, 4 KB, µs ({count} requests each, {handovers} handovers)\n\n\
         | | p50 | p90 | p99 | moving takes more, p50 | goal |\n|---|--:|--:|--:|--:|--:|\n"
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
            runner.way.goal()
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
        let text = markdown(&runners, 1);
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
