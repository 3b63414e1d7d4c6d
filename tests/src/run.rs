//! Runs one scenario, from lab up to lab down.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use baton_lab::{Options, Running};
use toml::Value;

use crate::guard::Guard;
use crate::scenario::Scenario;
use crate::slowness;
use crate::world::{CLUSTER, World};

/// The kfunc that makes a socket of a connection in the middle of its life; Linux has it since 6.9.
const KFUNC: &str = "bpf_sk_assign_tcp_reqsk";

/// Why this machine cannot run a scenario; `None` if it can.
pub fn why_not(scenario: &Scenario) -> Option<String> {
    if let Err(error) = scenario.lab.can_run() {
        return Some(error.to_string());
    }
    let missing = scenario.needs.iter().find(|program| !is_installed(program));
    if let Some(program) = missing {
        return Some(format!("`{program}` is not installed"));
    }
    (!kernel_adopts()).then(|| format!("this kernel has no {KFUNC}: Linux 6.9 or later does"))
}

/// Whether the kernel has [`KFUNC`]. The answer is kept, because the kernel takes a while to list its symbols.
fn kernel_adopts() -> bool {
    static ADOPTS: OnceLock<bool> = OnceLock::new();
    *ADOPTS.get_or_init(|| {
        std::fs::read_to_string("/proc/kallsyms").is_ok_and(|symbols| symbols.contains(KFUNC))
    })
}

/// Runs a scenario. Its lab is down afterwards, unless it failed and `BATON_TEST_KEEP` is set.
///
/// # Errors
/// The first step that was not as expected, with what the nodes logged; or a lab that cannot be
/// raised or taken down.
pub fn run(scenario: &Scenario) -> Result<()> {
    let baton = program().map_err(|why| anyhow!("{why}"))?;
    // Remove what an interrupted earlier run has left.
    baton_lab::down(scenario.lab.name(), |_| {})?;
    let mut options = Options::new(baton);
    options.patience *= slowness::factor();
    let lab = scenario.lab.up(&options, |_| {})?;
    let outcome = watched(scenario, &lab, baton);
    if outcome.is_err() && std::env::var_os("BATON_TEST_KEEP").is_some() {
        return outcome.context(format!(
            "the lab {} is left up",
            scenario.lab.name().as_str()
        ));
    }
    if outcome.is_err() {
        // The steps that would have ended clients in the background did not come.
        lab.end_others()?;
    }
    let down = lab.down().context("while taking the lab down");
    match (outcome, down) {
        (Ok(()), Ok(down)) if !down.warnings.is_empty() => {
            Err(anyhow!("{}", down.warnings.join("\n")))
        }
        (Ok(()), down) => down.map(drop),
        (Err(error), Ok(_)) => Err(error),
        (Err(error), Err(down)) => Err(anyhow!("{error:#}\n{down:#}")),
    }
}

fn watched(scenario: &Scenario, lab: &Running, baton: &Path) -> Result<()> {
    let mut world = World::new(lab.clone(), baton.to_owned())?;
    let outcome = Guard::set(lab, &clusters(&world)).and_then(|guard| {
        steps(scenario, &mut world)?;
        guard.check(lab, &world.killed)?;
        no_response_passed(&world)
    });
    let outcome = outcome.map_err(|error| anyhow!("{error:#}{}", logs(&world)));
    let errors = world.end();
    outcome?;
    errors.into_iter().next().map_or(Ok(()), Err)
}

fn steps(scenario: &Scenario, world: &mut World) -> Result<()> {
    for (index, step) in scenario.steps.iter().enumerate() {
        let begin = Instant::now();
        step.run(world)
            .with_context(|| format!("step {} ({step})", index + 1))?;
        if begin.elapsed() > Duration::from_secs(5) {
            eprintln!(
                "  {}, step {} ({step}): {:.1?}",
                scenario.name,
                index + 1,
                begin.elapsed()
            );
        }
    }
    Ok(())
}

/// Checks the other rule that always holds: no response passes a connection server.
fn no_response_passed(world: &World) -> Result<()> {
    for host in world.hosts_with("node") {
        // A host whose node was ended by a step cannot be asked.
        let Ok(counters) = world.counters(&host) else {
            continue;
        };
        let bytes = counters.get("cs_response_bytes").copied().unwrap_or(0);
        anyhow::ensure!(bytes == 0, "{bytes} response bytes passed {host}");
    }
    Ok(())
}

/// Every cluster address that a service of the lab has.
fn clusters(world: &World) -> Vec<String> {
    let mut addresses = vec![CLUSTER.to_string()];
    for host in world.hosts_with("node").iter().take(1) {
        let config = world.config(host).unwrap_or_default();
        let services = config
            .get("service")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        addresses.extend(services.filter_map(|one| Some(one.get("address")?.as_str()?.to_owned())));
    }
    addresses.sort();
    addresses.dedup();
    addresses
}

/// The counters of every node, and the end of its log.
fn logs(world: &World) -> String {
    let hosts = world.lab.hosts().unwrap_or_default();
    hosts
        .iter()
        .filter_map(|host| {
            let log = std::fs::read_to_string(host.directory.join("node.log")).ok()?;
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(6)..].join("\n  ");
            let counted = counted(world, &host.name);
            Some(format!("\n{}:{counted}\n  {last}", host.name))
        })
        .collect()
}

/// All counters of a node that are not 0; empty if the node does not answer.
fn counted(world: &World, host: &str) -> String {
    let counters = world.counters(host).unwrap_or_default();
    let counters = counters.iter().filter(|(_, count)| **count != 0);
    (counters.map(|(name, count)| format!(" {name}={count}"))).collect()
}

/// The path of the program under test: `BATON_BIN` if it is set. Otherwise the program is built in the profile of the
/// tests themselves, if it is missing or stale.
///
/// # Errors
/// The program cannot be built.
pub fn program() -> Result<&'static Path, &'static str> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| match std::env::var_os("BATON_BIN") {
        Some(path) => Ok(path.into()),
        None => build().map_err(|error| format!("cannot build baton: {error}")),
    });
    built.as_deref().map_err(String::as_str)
}

fn build() -> Result<PathBuf, escargot::error::CargoError> {
    let build = escargot::CargoBuild::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .package("baton")
        .bin("baton");
    let build = if cfg!(debug_assertions) {
        build
    } else {
        build.release()
    };
    Ok(build.run()?.path().to_owned())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}
