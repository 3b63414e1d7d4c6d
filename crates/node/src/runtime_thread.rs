//! A thread with a runtime of its own.

use anyhow::{Context as _, Result};
use std::{future::pending, thread};
use tokio::runtime::{Builder, EnterGuard, Handle};

/// A thread for tasks that wake each other. On one thread that takes no switch from thread to thread. It lives as long as
/// the process.
pub struct RuntimeThread(Handle);

impl RuntimeThread {
    /// Starts the thread.
    pub fn start(name: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.with_context(|| format!("cannot make the runtime of {name}"))?;
        let handle = runtime.handle().clone();
        thread::Builder::new()
            .name(name.into())
            .spawn(move || runtime.block_on(pending::<()>()))
            .with_context(|| format!("cannot start the thread of {name}"))?;
        Ok(Self(handle))
    }

    /// Tasks that begin while the guard lives are this thread's.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.0.enter()
    }
}
