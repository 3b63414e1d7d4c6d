//! A node that a step started.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use baton_lab::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use crate::slowness::patience;

/// The process of the node; `None` once it has ended.
pub struct StartedNode(pub(super) Option<Child>);

impl StartedNode {
    /// Kills the node, if it runs.
    ///
    /// # Errors
    /// The node does not end.
    pub fn kill(mut self) -> Result<()> {
        self.end(Signal::SIGKILL).map(drop)
    }

    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(match &mut self.0 {
            Some(child) => child.try_wait()?,
            None => None,
        })
    }

    pub(super) fn end(&mut self, signal: Signal) -> Result<ExitStatus> {
        let Some(mut child) = self.0.take() else {
            return Ok(ExitStatus::default());
        };
        kill(Pid::from_raw(child.id().cast_signed()), signal)?;
        let end = Instant::now() + patience();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= end {
                child.kill()?;
                child.wait()?;
                bail!("the node did not end within {:?} of {signal}", patience());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
