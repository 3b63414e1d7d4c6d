//! Notices Ctrl-C between steps, so that the lab is always taken down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the user wants this program to end.
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

/// The error of a step that was not begun because the user asked for the end.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl Interrupt {
    /// Catches signals: after this call Ctrl-C, SIGTERM and the end of the terminal are only noted.
    pub fn install() -> Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&asked)).context("cannot watch for Ctrl-C")?;
        }
        Ok(Interrupt { asked })
    }

    /// Whether the end was asked for.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Fails if the end was asked for.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.asked() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}
