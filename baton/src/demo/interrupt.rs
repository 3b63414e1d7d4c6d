//! Ctrl-C: noticed between steps, so that whatever was raised is taken down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether somebody wants this program to end.
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

/// The error of a step that was not begun because of it.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// From here on Ctrl-C, SIGTERM and the end of the terminal are only noted.
    pub fn install() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&asked)).context("cannot watch for Ctrl-C")?;
        }
        Ok(Interrupt { asked })
    }

    /// Whether it was asked for.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// An error if it was asked for.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.asked() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}
