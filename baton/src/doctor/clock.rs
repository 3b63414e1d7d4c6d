//! Checks this machine's clock.

use std::time::Duration;

use super::finding::Finding;

/// Checks that this machine's clock is kept right. Nodes drop messages whose sender's clock differs by more than
/// `clock_window`, so that an old message cannot be replayed; a clock that is never set drifts out of that window.
pub fn check(window: Duration) -> Finding {
    judge(&ask(), window)
}

const NAME: &str = "clock";

/// The kernel's state of its clock (adjtimex(2)).
struct Clock {
    synchronized: bool,
    /// The greatest error that the clock may have.
    error: Duration,
}

fn judge(clock: &Option<Clock>, window: Duration) -> Finding {
    let why = format!(
        "Nodes drop each other's messages when their clocks differ by more than clock_window ({window:?}):"
    );
    let remedy = format!("{why} let an NTP client (chrony, systemd-timesyncd) adjust this clock.");
    match clock {
        None => Finding::advice(
            NAME,
            "the kernel does not say whether it is synchronized",
            remedy,
        ),
        Some(clock) if !clock.synchronized => {
            Finding::advice(NAME, "not synchronized, as far as the kernel knows", remedy)
        }
        Some(clock) if clock.error > window / 2 => Finding::advice(
            NAME,
            format!("synchronized, but may be off by {:?}", clock.error),
            remedy,
        ),
        Some(clock) => Finding::good(NAME, format!("synchronized, within {:?}", clock.error)),
    }
}

fn ask() -> Option<Clock> {
    // SAFETY: timex is a plain C structure of numbers, for which all zero is valid; `modes` 0 asks.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call, and without modes nothing is changed.
    let state = unsafe { libc::adjtimex(&mut timex) };
    (state >= 0).then(|| Clock {
        synchronized: timex.status & libc::STA_UNSYNC == 0,
        error: Duration::from_micros(u64::try_from(timex.maxerror).unwrap_or(u64::MAX)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn synchronized_and_close() {
        let window = Duration::from_secs(10);
        let verdict = |synchronized, seconds| {
            let error = Duration::from_secs(seconds);
            judge(
                &Some(Clock {
                    synchronized,
                    error,
                }),
                window,
            )
            .verdict()
        };
        assert_eq!(verdict(true, 0), Good);
        assert_eq!(verdict(true, 6), Advice);
        assert_eq!(verdict(false, 0), Advice);
        assert_eq!(judge(&None, window).verdict(), Advice);
    }

    #[test]
    fn the_kernel_answers() {
        assert!(ask().is_some());
    }
}
