//! What a node is told by signals. They are heard from before it is set up: one that comes meanwhile must neither be lost
//! nor leave a half.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::daemon::Ending;

/// What one says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// To end.
    End(Ending),
    /// To read its configuration again.
    Reload,
}

/// From [`Signals::begin`] on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

impl Signals {
    /// None ends this process from now on: [`Signals::next`] says what came.
    pub fn begin() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one. Nothing is lost if this is dropped before it is done.
    pub async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End(Ending::TakeDown),
            _ = self.interrupt.recv() => Told::End(Ending::TakeDown),
            _ = self.quit.recv() => Told::End(Ending::LeaveInPlace),
            _ = self.hang_up.recv() => Told::Reload,
        }
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal::SIGHUP, raise};

    use super::*;

    #[tokio::test]
    async fn what_came_while_nobody_waited() {
        let mut signals = Signals::begin().expect("this process may hear signals");
        raise(SIGHUP).expect("a signal to oneself is allowed");
        tokio::task::yield_now().await;
        assert_eq!(signals.next().await, Told::Reload);
    }
}
