//! A live view of the node that runs here.
//!
//! ```text
//!  the node --status--> questions (a thread) ---> rates: two answers make a view --> draw
//!                                                   keys --> screen: page, order ------^
//! ```

mod draw;
mod questions;
mod rates;
mod screen;
mod terminal;

use std::{
    io::{IsTerminal as _, stdout},
    path::Path,
    time::Duration,
};

use anyhow::{Result, bail};

use self::{
    questions::{Answers, Questions},
    screen::{KeyEffect, Screen},
    terminal::Terminal,
};

/// Signals and answers of the node are looked for so often: a person notices no delay.
const MOMENT: Duration = Duration::from_millis(50);

/// Shows the node of this configuration until the user quits. The node is asked again after each `interval`.
///
/// # Errors
/// There is no terminal, or the node does not answer the first question.
pub fn run(file: &Path, interval: Duration) -> Result<()> {
    if !stdout().is_terminal() {
        bail!(
            "standard output is not a terminal: `baton status` shows the same once (with --json for programs)"
        );
    }
    let questions = Questions::start(file, interval)?;
    let mut terminal = Terminal::open()?;
    watch(&mut terminal, &questions)?;
    let signal = terminal.signal();
    drop(terminal);
    match signal {
        Some(signal) => Ok(signal_hook::low_level::emulate_default_handler(signal)?),
        None => Ok(()),
    }
}

fn watch(terminal: &mut Terminal, questions: &Questions) -> Result<()> {
    let mut screen = Screen::default();
    let mut answers = Answers::default();
    let mut changed = true;
    while terminal.signal().is_none() {
        while let Some(answer) = questions.answer()? {
            answers.take(answer);
            changed = true;
        }
        if std::mem::take(&mut changed) {
            let view = answers.view();
            let mut rows = 0;
            terminal.draw(|frame| rows = draw::draw(frame, &view, &screen, answers.trouble()))?;
            screen.scroll_within(rows);
        }
        if let Some(event) = terminal.event(MOMENT)? {
            match screen.handle(&event) {
                KeyEffect::Quit => break,
                KeyEffect::Redraw => changed = true,
                KeyEffect::Nothing => {}
            }
        }
    }
    Ok(())
}
