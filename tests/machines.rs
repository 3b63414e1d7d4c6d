//! Checks of a cluster of QEMU machines, in their order, on one set of machines. `BATON_MACHINES` asks for them and
//! names the kernel; without it they are ignored. tests/machines.md says more.

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use baton_tests::machine::{CHECKS, Check, RELEASE, cluster::Cluster, remove_network};
use baton_tests::run::program;
use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::signal::{SigSet, Signal};

/// The machines, once a check has asked for them; or why there are none.
type Machines = Arc<Mutex<Option<Result<Cluster, String>>>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // In this thread: QEMU ends with the thread that started it.
    arguments.test_threads = Some(1);
    let release = std::env::var(RELEASE).ok().filter(|name| !name.is_empty());
    if release.is_none() && !arguments.list {
        for check in CHECKS {
            eprintln!(
                "skipped: {}: {RELEASE} names no kernel (`make machines` does)",
                check.name
            );
        }
    }
    if release.is_some()
        && let Err(error) = end_on_signals()
    {
        eprintln!("machines: {error:#}");
        return ExitCode::FAILURE;
    }
    let machines = Machines::default();
    let trials = CHECKS.iter().map(|check| {
        let (machines, release) = (Arc::clone(&machines), release.clone());
        Trial::test(check.name, move || {
            judge(check, &machines, &release.unwrap_or_default())
                .map_err(|error| Failed::from(format!("{}\n{error:#}", check.shows)))
        })
    });
    let trials = trials.map(|trial| trial.with_ignored_flag(release.is_none()));
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let machines = (machines.lock().unwrap_or_else(PoisonError::into_inner)).take();
    if std::env::var_os("BATON_MACHINES_KEEP").is_some()
        && std::env::var_os("BATON_MACHINES_UP").is_none()
        && let Some(Ok(cluster)) = machines
    {
        cluster.keep();
    }
    conclusion.exit_code()
}

fn judge(check: &Check, machines: &Machines, release: &str) -> Result<()> {
    let mut machines = machines.lock().unwrap_or_else(PoisonError::into_inner);
    let machines = machines.get_or_insert_with(|| raise(release).map_err(|e| format!("{e:#}")));
    let cluster = machines.as_mut().map_err(|why| anyhow!("{why}"))?;
    (check.run)(cluster).map_err(|error| anyhow!("{error:#}{}", cluster.logs()))
}

fn raise(release: &str) -> Result<Cluster> {
    if std::env::var_os("BATON_MACHINES_UP").is_some() {
        return Cluster::attach();
    }
    let baton = program().map_err(|why| anyhow!("{why}"))?;
    let client = Path::new(env!("CARGO_BIN_EXE_machine-client"));
    Cluster::up(release, baton, client)
}

/// An interrupt ends all at once: machines are killed with this process, and their network is removed.
fn end_on_signals() -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    std::thread::spawn(move || {
        let signal = signals.wait();
        eprintln!("machines: ended by {signal:?}");
        remove_network();
        std::process::exit(130);
    });
    Ok(())
}
