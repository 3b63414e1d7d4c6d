//! What a node is told by signals. They are caught before the node is set up, because a signal that arrives during the
//! setup must neither be lost nor leave a node that is half set up.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why the daemon stopped serving, which decides what is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The daemon was told to end and to restore the host to what it was.
    TakeDown,
    /// The daemon was told to end and to leave the packet path in place for the next daemon.
    LeaveInPlace,
    /// An interface of the node is gone.
    WithoutInterface,
    /// All interfaces are back: the program is to begin anew.
    Again,
}

/// What a signal tells the node to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalEvent {
    /// The node is to end in this way.
    End(Ending),
    /// The node is to read its configuration again.
    Reload,
}

/// The signals that this process catches from [`Signals::begin`] on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Catches the signals: none of them ends this process anymore, and [`Signals::next`] returns them.
    pub fn begin() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. No signal is lost if this future is dropped before it is ready.
    pub async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.terminate.recv() => SignalEvent::End(Ending::TakeDown),
            _ = self.interrupt.recv() => SignalEvent::End(Ending::TakeDown),
            _ = self.quit.recv() => SignalEvent::End(Ending::LeaveInPlace),
            _ = self.hang_up.recv() => SignalEvent::Reload,
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
        assert_eq!(signals.next().await, SignalEvent::Reload);
    }
}
