//! `baton migrate CS CS*`: another connection server takes over, with all that this one remembers.

use std::{path::Path, process::ExitCode, thread::sleep, time::Duration};

use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;

use super::ConfigFile;
use crate::bar::progress_bar;
use baton_node::{
    control::{Request, Response, ask},
    migration::{Doing, Ended, Running, State, Summary},
};

/// Between two looks at how it is getting on.
const LOOK: Duration = Duration::from_millis(50);

/// Let another connection server take over while traffic runs; to be run at any node of the cluster.
#[derive(Args)]
pub struct Migrate {
    /// The connection server that is in front
    #[arg(value_name = "CS")]
    from: String,
    /// The connection server that takes over
    #[arg(value_name = "CS*")]
    to: String,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigFile,
}

impl Migrate {
    /// Returns when the other one has taken over, or will not.
    pub fn run(self) -> Result<ExitCode> {
        let (summary, by_hand) = carry_out(&self.config.config, &self.from, &self.to)?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&summary)?);
            return Ok(ExitCode::SUCCESS);
        }
        print(&self.from, &self.to, &summary);
        if by_hand {
            println!(
                "baton does not move the cluster addresses here ([failover] address): move them to {} now.",
                self.to
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns when the other one has taken over, with whether the addresses are still to be moved by hand.
///
/// # Errors
/// It has not, and why.
pub(super) fn carry_out(file: &Path, from: &str, to: &str) -> Result<(Summary, bool)> {
    let (from, to) = (from.to_owned(), to.to_owned());
    let request = Request::Migrate {
        from: from.clone(),
        to: to.clone(),
    };
    let progress = Request::Migration { from, to };
    let mut state = asked(file, &request)?;
    let bar = Bar::new();
    while let Some(running) = &state.running {
        bar.show(running);
        sleep(LOOK);
        state = asked(file, &progress)?;
    }
    bar.end();
    match state.ended {
        Some(Ended::Done(summary)) => Ok((summary, state.by_hand)),
        Some(Ended::Failed(why)) => bail!("{why}"),
        None => bail!("the node's daemon has restarted meanwhile; `baton status` shows the state"),
    }
}

fn asked(file: &Path, request: &Request) -> Result<State> {
    match ask(file, request)? {
        Response::Migration(state) => Ok(*state),
        other => Err(other.unexpected()),
    }
}

fn print(from: &str, to: &str, summary: &Summary) {
    let first = summary.passes.first().copied().unwrap_or(0);
    println!(
        "{from} -> {to}: {first} connections in {:.1} ms; requests waited for {:.1} ms; in all, with the cluster addresses, {:.1} ms.",
        summary.copied_ms, summary.held_ms, summary.took_ms
    );
    let passes: Vec<String> = summary.passes.iter().map(ToString::to_string).collect();
    println!(
        "Passes: {} entries, in {} batches, {} sent again.",
        passes.join(", "),
        summary.batches,
        summary.resent
    );
    for (count, why) in [
        (summary.full, "its table is full"),
        (summary.no_owner, "it has no such data server"),
        (summary.no_service, "it has no such service"),
    ] {
        if count > 0 {
            println!(
                "{count} entries are not in {to}'s table: {why}. Their connections are found by asking data servers."
            );
        }
    }
}

/// A bar on a terminal, nothing elsewhere: it takes milliseconds.
struct Bar(Option<ProgressBar>);

impl Bar {
    fn new() -> Self {
        Self(progress_bar(0))
    }

    fn show(&self, running: &Running) {
        let Some(bar) = &self.0 else { return };
        bar.set_length(running.entries as u64);
        bar.set_position(running.came as u64);
        bar.set_message(match running.stage {
            Doing::Asking => "asks the other node".into(),
            Doing::Copying => format!("pass {}", running.pass),
            Doing::Moving => "the cluster addresses move".into(),
            Doing::Finishing => "what changed last".to_owned(),
        });
    }

    fn end(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}
