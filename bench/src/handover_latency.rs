//! What a handover adds to a request: 4 KB, one request at a time, of two servers in turn. The ways take
//! turns request by request, so that all meet the same machine.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::latency::{Client, percentiles};
use crate::options::Options;
use crate::statistics::percentile;
use crate::wrk::Target;

/// Each of another server.
const PAGES: [&str; 2] = ["/ds1/4k", "/ds2/4k"];
/// Requests of each way that are not counted.
const WARM_UP: u32 = 100;
/// Before each request: a handover leaves work behind, the end of the old owner's socket, which is not to
/// fall into the time of whose turn is next.
const PAUSE: Duration = Duration::from_micros(200);
/// The most that a handover should add, in microseconds.
const GOAL: &str = "≤ 10";

/// A way to the two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Over one connection, which each request moves.
    Moving,
    /// Over a connection for each page.
    Staying,
    /// Over one connection of the client's, by path.
    HaProxy,
    /// Over a connection to each server.
    Direct,
}

/// The connections of a way, and how long its requests took.
struct Runner {
    way: Way,
    /// One for both pages, or one for each.
    clients: Vec<Client>,
    times: Vec<Duration>,
}

/// Measures, and says it in Markdown.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<String> {
    eprintln!("latency of a handover: {} requests each", options.requests);
    let before = lab.counter("cs_handover")?;
    let running = lab.running()?;
    let runners = running.within("client", || requests(options.requests))??;
    Ok(markdown(&runners, lab.counter("cs_handover")? - before))
}

fn requests(count: u32) -> Result<Vec<Runner>> {
    let mut runners: Vec<Runner> = Way::ALL
        .into_iter()
        .map(Runner::begin)
        .collect::<Result<_>>()?;
    for number in 0..WARM_UP + count {
        for runner in &mut runners {
            thread::sleep(PAUSE);
            let time = runner.request(number as usize)?;
            if number >= WARM_UP {
                runner.times.push(time);
            }
        }
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
            Way::Moving => vec![connect(Target::BATON.first())?],
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

    fn request(&mut self, number: usize) -> Result<Duration> {
        let client = number % self.clients.len();
        self.clients[client].request(PAGES[number % PAGES.len()])
    }

    /// In microseconds; NaN without a request.
    fn median(&self) -> f64 {
        percentile(&self.times, 0.5).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    }
}

impl Way {
    /// In the order of their turns. The first is what the others are compared with.
    const ALL: [Way; 4] = [Way::Moving, Way::Staying, Way::HaProxy, Way::Direct];

    fn name(self) -> &'static str {
        match self {
            Way::Moving => "moving",
            Way::Staying => "staying",
            Way::HaProxy => "HAProxy",
            Way::Direct => "direct",
        }
    }

    /// What moving may take more, in microseconds.
    fn goal(self) -> &'static str {
        match self {
            Way::Moving | Way::Direct => "–",
            Way::Staying => GOAL,
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
