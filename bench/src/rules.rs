//! Measures what a request costs if it is decided in user space: the same page of the same server is asked for by a
//! rule on more than host and path, and by its path alone. The two take turns request by request.

use std::time::Duration;

use anyhow::Result;

use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::latency::{Client, WARM_UP, percentiles};
use crate::options::Options;

/// The two paths. bench/lab.toml routes both to ds1.
const PAGES: [(&str, &str); 2] = [("in the kernel", "/ds1/4k"), ("in user space", "/ds9/4k")];

/// Measures on a thread inside the client, and returns the report in Markdown.
pub(crate) fn measure(lab: &BenchLab, options: &Options) -> Result<String> {
    eprintln!("rules: {} requests each", options.requests);
    let times = lab
        .running()?
        .within("client", || requests(options.requests))??;
    let mut text = format!(
        "## Latency of one request at a time, 4 KB, by where it is decided, µs ({} requests each)\n\n\
         | decided | p50 | p90 | p99 |\n|---|--:|--:|--:|\n",
        options.requests
    );
    for ((name, _), times) in PAGES.iter().zip(&times) {
        text += &format!("| {name} | {} |\n", percentiles(times));
    }
    Ok(text)
}

/// The times of both pages' requests, each sorted, in the order of the pages.
fn requests(count: u32) -> Result<[Vec<Duration>; 2]> {
    let address = Competitor::Baton.addresses()[0];
    let connect = |(name, _)| Client::connect(name, (address, 80));
    let mut clients = [connect(PAGES[0])?, connect(PAGES[1])?];
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..WARM_UP + count {
        let turns = clients.iter_mut().zip(PAGES).zip(&mut times);
        for ((client, (_, page)), times) in turns {
            let time = client.request(page)?;
            if number >= WARM_UP {
                times.push(time);
            }
        }
    }
    times.iter_mut().for_each(|times| times.sort());
    Ok(times)
}
