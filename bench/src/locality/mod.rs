//! Shows how policies affect the servers' caches. The caches are real, each is too small for all documents, and
//! documents are asked for by popularity. Hits are counted from the caches' own logs. Each policy has a lab of its
//! own, so that all begin with empty caches.

mod audience;
mod popularity;
mod tally;

use std::time::Duration;

use anyhow::Result;

use crate::lab::{BenchLab, in_bench};
use crate::options::Options;
use audience::{Audience, Enough};
use popularity::Popularity;
use tally::Tally;

const LAB: &str = include_str!("../../locality/lab.toml");
const CACHE_CONFIG: &str = "bench/locality/cache.conf";
/// The text in the lab file that stands for the policy.
const POLICY: &str = "\"POLICY\"";
/// The names of the servers in the lab file.
const SERVERS: [&str; 4] = ["ds1", "ds2", "ds3", "ds4"];

/// The number of documents: three times what one cache holds, and three quarters of what all caches hold.
const DOCUMENTS: usize = 1350;
const ZIPF: f64 = 0.9;
/// The number of connections, which is so large that there is always a queue at the scarce link.
const CONNECTIONS: u64 = 32;

/// A scene: the policies, the requests and their duration.
struct Scene {
    title: &'static str,
    policies: &'static [&'static str],
    /// The part of all requests that is for one hot document.
    hot: f64,
    warm_up: Enough,
    counted: Enough,
}

const SCENES: [Scene; 2] = [
    Scene {
        title: "Hit rates by policy",
        policies: &["round-robin", "path", "lard"],
        hot: 0.0,
        warm_up: Enough::requests(30_000),
        counted: Enough::requests(30_000),
    },
    // The warm-up is as long as "lard" takes to move what it moves, because it moves a part of that each second.
    Scene {
        title: "The same where one document has a quarter of all requests",
        policies: &["path", "lard"],
        hot: 0.25,
        warm_up: Enough::time(Duration::from_secs(120)),
        counted: Enough::time(Duration::from_secs(30)),
    },
];

/// The results of one policy in a scene.
struct Turn {
    policy: &'static str,
    rate: f64,
    /// The number of answered requests. `tallies` may count more, if a request was served twice.
    requests: u64,
    /// The tallies of the servers.
    tallies: Vec<Tally>,
    held: Vec<usize>,
}

/// Measures all scenes, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let mut text = String::new();
    for scene in &SCENES {
        let turns = scene.policies.iter().map(|policy| {
            eprintln!("{}: {policy}", scene.title);
            turn(options, scene, policy)
        });
        text += &markdown(scene, &turns.collect::<Result<Vec<_>>>()?);
    }
    Ok(text)
}

fn turn(options: &Options, scene: &Scene, policy: &'static str) -> Result<Turn> {
    let text = LAB
        .replace(CACHE_CONFIG, &in_bench("locality/cache.conf")?)
        .replace(POLICY, &format!("{policy:?}"));
    let lab = BenchLab::raise_from(&text, options)?;
    let popularity = Popularity::new(DOCUMENTS, ZIPF, scene.hot);
    let mut audience = Audience::connect(&lab, CONNECTIONS, popularity)?;
    let before = audience.ask(scene.warm_up)?;
    let warm = tally::settled(&lab, &SERVERS, before.requests)?;
    let logged = warm.iter().copied().sum::<Tally>().requests;
    let asked = audience.ask(scene.counted)?;
    let whole = tally::settled(&lab, &SERVERS, logged + asked.requests)?;
    Ok(Turn {
        policy,
        rate: asked.rate(),
        requests: asked.requests,
        tallies: whole.iter().zip(&warm).map(|(w, b)| w.since(b)).collect(),
        held: tally::held(&lab, &SERVERS)?,
    })
}

fn markdown(scene: &Scene, turns: &[Turn]) -> String {
    let mut text = format!(
        "## {}\n\n{DOCUMENTS} documents of 4 KB, popularity 1/rank^{ZIPF}, {CONNECTIONS} connections; warmed up for {}, counted for {}\n\n\
         | policy | hits | requests/s | hits of each server | its part of the requests | documents it holds | served twice |\n\
         |---|--:|--:|---|---|---|--:|\n",
        scene.title, scene.warm_up, scene.counted,
    );
    for turn in turns {
        let all: Tally = turn.tallies.iter().copied().sum();
        let hits = turn.tallies.iter().map(|one| percent(one.hit_rate()));
        let parts = turn
            .tallies
            .iter()
            .map(|one| percent(one.requests as f64 / all.requests as f64));
        let held = turn.held.iter().map(usize::to_string);
        text += &format!(
            "| {} | {} | {:.0} | {} | {} | {} | {} of {} |\n",
            turn.policy,
            percent(all.hit_rate()),
            turn.rate,
            list(hits),
            list(parts),
            list(held),
            all.requests - turn.requests, // no fewer: tally::settled
            turn.requests,
        );
    }
    text.push('\n');
    text
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

fn list(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(", ")
}
