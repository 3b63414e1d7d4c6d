//! Finds where baton takes more processor time than direct access: both are sampled by perf in turns, and compared
//! function by function, in processor time a request.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::competitor::Competitor;
use crate::lab::BenchLab;
use crate::options::Options;
use crate::throughput::Load;
use crate::wrk;

/// The number of samples a second, for each processor.
const FREQUENCY: f64 = 5000.0;
/// The programs whose time is counted. The kernel's work is charged to the program that it interrupts.
const PROGRAMS: [&str; 4] = ["wrk", "nginx", "swapper", "ksoftirqd"];
const SHOWN: usize = 40;

/// The processor time of functions, in microseconds a request.
pub(crate) struct Profile {
    load: Load,
    baton: Side,
    direct: Side,
}

#[derive(Default)]
struct Side {
    requests: f64,
    samples: BTreeMap<String, u64>,
}

/// Samples both in turns, as often as there are rounds.
pub(crate) fn measure(lab: &BenchLab, options: &Options, load: Load) -> Result<Profile> {
    let mut profile = Profile {
        load,
        baton: Side::default(),
        direct: Side::default(),
    };
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for (competitor, side) in [
            (Competitor::Baton, &mut profile.baton),
            (Competitor::Direct, &mut profile.direct),
        ] {
            sample(lab, options, competitor, load, side)?;
        }
    }
    Ok(profile)
}

impl Profile {
    /// A table of the functions that take most more time with baton than with direct access.
    pub fn markdown(&self) -> String {
        let names = self.baton.samples.keys().chain(self.direct.samples.keys());
        let mut rows: Vec<(f64, f64, &str)> = names
            .map(|name| {
                (
                    self.baton.micros(name),
                    self.direct.micros(name),
                    name.as_str(),
                )
            })
            .collect();
        rows.sort_by(|a, b| (b.0 - b.1).total_cmp(&(a.0 - a.1)).then(a.2.cmp(b.2)));
        rows.dedup_by_key(|row| row.2);
        let (baton, direct) = (self.baton.total(), self.direct.total());
        let mut text = format!(
            "## Processor time by function, {}, µs a request\n\n\
             | function | baton | direct | more |\n|---|--:|--:|--:|\n\
             | all | {baton:.2} | {direct:.2} | {:.2} |\n",
            self.load.name(),
            baton - direct
        );
        for (baton, direct, name) in rows.iter().take(SHOWN) {
            text += &format!(
                "| {name} | {baton:.3} | {direct:.3} | {:.3} |\n",
                baton - direct
            );
        }
        text
    }
}

impl Side {
    fn micros(&self, name: &str) -> f64 {
        self.cost(self.samples.get(name).copied().unwrap_or_default())
    }

    fn total(&self) -> f64 {
        self.cost(self.samples.values().sum())
    }

    fn cost(&self, samples: u64) -> f64 {
        samples as f64 * 1e6 / FREQUENCY / self.requests
    }
}

fn sample(
    lab: &BenchLab,
    options: &Options,
    competitor: Competitor,
    load: Load,
    side: &mut Side,
) -> Result<()> {
    let data = options.results.join("perf.data");
    // perf ends by itself. Its time lies in the middle of wrk's turn.
    let edge = Duration::from_millis(300);
    let mut work = load.work(options);
    work.time = work.time.max(Duration::from_secs(2));
    let time = work.time - 2 * edge;
    let sampled = std::thread::scope(|scope| {
        let perf = scope.spawn(|| {
            std::thread::sleep(edge);
            record(&data, time)
        });
        let measured = wrk::run(lab, competitor, work)?;
        perf.join()
            .map_err(|_| anyhow::anyhow!("the thread that runs perf panicked"))??;
        Ok::<_, anyhow::Error>(measured)
    });
    side.requests += sampled?.rate() * time.as_secs_f64();
    let counted = count(&data, &mut side.samples);
    std::fs::remove_file(&data).with_context(|| format!("remove {}", data.display()))?;
    counted
}

fn record(data: &Path, time: Duration) -> Result<()> {
    let output = Command::new("perf")
        .args([
            "record",
            "--all-cpus",
            "--freq",
            &FREQUENCY.to_string(),
            "--output",
        ])
        .arg(data)
        .args(["--", "sleep", &time.as_secs_f64().to_string()])
        .output()
        .context("run perf (on Debian, `apt-get install linux-perf`)")?;
    if !output.status.success() {
        bail!(
            "perf record failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

fn count(data: &Path, samples: &mut BTreeMap<String, u64>) -> Result<()> {
    let mut script = Command::new("perf")
        .args(["script", "--fields", "comm,ip,sym", "--input"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("run perf script")?;
    if let Some(pipe) = script.stdout.take() {
        for line in BufReader::new(pipe).lines() {
            if let Some(name) = function(&line.context("read what perf script says")?) {
                *samples.entry(name).or_default() += 1;
            }
        }
    }
    let status = script.wait().context("wait for perf script")?;
    if !status.success() {
        bail!("perf script failed: {status}");
    }
    Ok(())
}

/// The function that a line `  comm  address symbol` names, if the program is one of those that count. Code in user
/// space without symbols counts as one function.
fn function(line: &str) -> Option<String> {
    let line = line.trim_start();
    let program = PROGRAMS.iter().find(|program| line.starts_with(*program))?;
    let symbol = line.split_ascii_whitespace().nth(2)?;
    Some(match symbol {
        "[unknown]" => format!("({program} itself)"),
        symbol => symbol.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_its_function() {
        let name = |line| function(line);
        assert_eq!(
            name("   wrk  ffffffff81a tcp_ack").as_deref(),
            Some("tcp_ack")
        );
        assert_eq!(
            name(" nginx  55d0 [unknown]").as_deref(),
            Some("(nginx itself)")
        );
        assert_eq!(name("rustc  55d0 [unknown]"), None);
        assert_eq!(name(""), None);
    }
}
