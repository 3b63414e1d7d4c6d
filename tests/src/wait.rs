//! How steps wait for what must come.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::slowness;
use crate::span::Span;

/// How long a step waits, unless the scenario says otherwise.
pub(crate) fn patience() -> Span {
    Span(slowness::patience())
}

/// Repeats a check until it succeeds or the time is over. Returns the result of the last one.
///
/// # Errors
/// The check still fails when the time is over.
pub(crate) fn until<T>(patience: Span, mut check: impl FnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + patience.0;
    loop {
        match check() {
            Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(50)),
            done => return done,
        }
    }
}
