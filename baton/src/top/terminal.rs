//! The terminal while this program uses it. However the program ends, by a key, an error, a panic or a signal, the
//! terminal is left as it was.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use ratatui::{
    DefaultTerminal, Frame,
    crossterm::event::{self, Event},
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// Signals that ask for an end. Ctrl-C is an ordinary key while the program uses the terminal, but SIGINT can still
/// come.
const ENDING: [i32; 4] = [SIGTERM, SIGHUP, SIGINT, SIGQUIT];

pub struct Terminal {
    inner: DefaultTerminal,
    /// The number of the ending signal that has come, or 0.
    signal: Arc<AtomicUsize>,
}

impl Terminal {
    /// Takes over the terminal. The signals are registered first: a signal that comes in between must not leave the
    /// terminal changed.
    pub fn open() -> Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in ENDING {
            // The number of a signal is small and above 0, so the conversion is exact.
            let value = number as usize;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), value)
                .context("cannot wait for signals")?;
        }
        // This also sets a panic hook, which restores the terminal before the panic's message is printed.
        let inner = ratatui::try_init().context("cannot take over this terminal")?;
        Ok(Self { inner, signal })
    }

    /// The number of the ending signal, if one has come.
    pub fn signal(&self) -> Option<i32> {
        let number = self.signal.load(Ordering::Relaxed);
        i32::try_from(number).ok().filter(|number| *number != 0)
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<()> {
        self.inner
            .draw(draw)
            .context("cannot write to the terminal")?;
        Ok(())
    }

    /// A key or a change of size, if one comes within this time.
    pub fn event(&self, within: Duration) -> Result<Option<Event>> {
        let ready = event::poll(within).context("cannot read from the terminal")?;
        Ok(match ready {
            true => Some(event::read().context("cannot read from the terminal")?),
            false => None,
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a panic the hook has restored the terminal. A second time would move the cursor back above the panic's
        // message.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

#[cfg(test)]
#[path = "../../tests/pty/mod.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "of the helper only some is of use here, and a test may panic"
)]
mod pty;

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        let this = std::env::current_exe().expect("a test knows where it is");
        let test = "top::terminal::tests::in_a_terminal_of_its_own";
        let pty = pty::Pty::start(
            Command::new(this)
                .args(["--exact", test, "--ignored", "--nocapture"])
                .env("TERM", "xterm"),
        );
        pty.wait_for(pty::ENTER);
        let (status, said) = pty.ended();
        assert!(!status.success());
        let panic = said.rfind("out of order").expect("the panic is told");
        assert!(
            said.rfind(pty::LEAVE) < Some(panic),
            "it is told on the screen that is gone"
        );
    }

    #[test]
    #[ignore = "panics: run by the test above, in a terminal of its own"]
    fn in_a_terminal_of_its_own() {
        let mut terminal = Terminal::open().expect("a terminal");
        terminal
            .draw(|frame| frame.render_widget("here", frame.area()))
            .expect("a terminal");
        panic!("out of order");
    }
}
