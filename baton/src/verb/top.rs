//! `baton top`: the node that runs here, live.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use clap::Args;

use super::ConfigFile;
use crate::top;

/// Watch the running node.
#[derive(Args)]
pub struct Top {
    #[command(flatten)]
    config: ConfigFile,
    /// Seconds between two looks at the node
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
}

impl Top {
    /// Until somebody quits.
    pub fn run(self) -> Result<ExitCode> {
        top::run(&self.config.config, self.interval)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Often enough to watch, seldom enough not to be work for the node.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "a number of seconds is wanted, such as 0.5".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("choose 0.1 to 3600 seconds".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("3600"), Ok(Duration::from_secs(3600)));
        for wrong in ["0", "0.01", "-1", "3601", "inf", "NaN", "1s", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
