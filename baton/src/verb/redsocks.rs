//! `baton redsocks -- CMD…`: runs a program whose TCP connections servers may redirect. The program is a child in
//! a control group of its own; this process is the agent of its connections, and stays for as long as there are
//! any.

use std::{
    ffi::OsString,
    io,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitCode, ExitStatus},
    time::Duration,
};

use super::become_program::become_program;
use anyhow::{Context as _, Result};
use baton_redsocks::agent::{Options, RedSocks};
use baton_virtual_sockets::{Agent, Group, Settings};
use clap::Args;
use eop_protocol::{Allow, Prefix};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

/// Between two looks whether anybody is left.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Args)]
pub struct RedSocksVerb {
    /// Let any server redirect to these addresses, ADDRESS/BITS, and to no others; may be repeated. If not given, a
    /// server may redirect to addresses that are not nearer to this host than its own
    #[arg(long, value_name = "PREFIX")]
    allow: Vec<Prefix>,
    /// How many of the last KiB sent on a connection are kept, to be sent again after a redirect
    #[arg(long, value_name = "KIB", default_value_t = 1024)]
    kept: u16,
    /// How many ms a server may take to say that it speaks EOP; after that it counts as a plain TCP server
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    patience: u64,
    /// The control group that this very process is to be in
    #[arg(long, hide = true)]
    within: Option<String>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

impl RedSocksVerb {
    pub fn run(self) -> Result<ExitCode> {
        match &self.within {
            Some(name) => {
                Group::named_after(Path::new(name))?.enter()?;
                become_program(&self.command)
            }
            None => {
                say_what_goes_wrong();
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()?;
                runtime.block_on(self.serve())
            }
        }
    }

    async fn serve(self) -> Result<ExitCode> {
        let name = format!("redsocks-{}", std::process::id());
        let group = Group::named_after(Path::new(&name))?;
        let agent = Agent::start_for_calls(Settings {
            group: group.clone(),
            pins: None,
            cluster: Vec::new(),
            direct: Vec::new(),
        })
        .context("cannot follow a program's connections")?;
        let allow = if self.allow.is_empty() {
            Allow::default()
        } else {
            Allow::only(self.allow.clone())
        };
        let far = RedSocks::new(Options {
            allow,
            patience: Duration::from_millis(self.patience),
            kept: usize::from(self.kept) << 10,
            ..Options::default()
        });
        let result = tokio::select! {
            Err(error) = agent.serve(far) => Err(error.into()),
            status = self.run_within(&name, &group, &agent) => status,
        };
        for error in agent.take_down() {
            eprintln!("baton: {error}");
        }
        Ok(code(result?))
    }

    /// Until the program has ended, and whatever it has left in its group, and their connections.
    async fn run_within(&self, name: &str, group: &Group, agent: &Agent) -> Result<ExitStatus> {
        // This program again, which moves itself before it becomes the other: not one socket is made outside.
        let mut child = Command::new(std::env::current_exe()?)
            .args(["redsocks", "--within", name, "--"])
            .args(&self.command)
            .spawn()
            .context("cannot start the program")?;
        let status = wait(&mut child).await?;
        while !group.is_empty()? || agent.is_busy() {
            tokio::time::sleep(LOOK).await;
        }
        Ok(status)
    }
}

/// Beside the program's own words: only why a connection of it was reset, or a redirect not followed.
fn say_what_goes_wrong() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .from_env_lossy();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .without_time()
        .with_target(false);
    // Nobody else has set one.
    let _ = log.try_init();
}

/// Signals meant for the program are sent on to it; those that a terminal sends it has got itself.
async fn wait(child: &mut Child) -> Result<ExitStatus> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    loop {
        let which = tokio::select! {
            status = child.wait() => return Ok(status?),
            _ = terminate.recv() => Signal::SIGTERM,
            _ = hangup.recv() => Signal::SIGHUP,
            _ = interrupt.recv() => continue,
            _ = quit.recv() => continue,
        };
        if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended meanwhile.
            let _ = signal::kill(Pid::from_raw(pid), which);
        }
    }
}

/// As a shell says it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX),
    )
}
