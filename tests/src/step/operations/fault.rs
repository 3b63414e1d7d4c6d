//! A step that causes faults in the lab. crates/lab describes each fault.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton_lab::{Direction, Fault as Wrong, Loss, Only, Packets};
use serde::Deserialize;

use crate::span::Span;
use crate::world::World;

/// Causes a fault. If `for` gives a time, the step undoes the fault after that time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The hosts, one after the other.
    on: Vec<String>,
    what: What,
    /// The program that is killed, paused or continued.
    #[serde(default = "node")]
    thing: String,
    /// The parts of the packets that are lost, 0 to 1.
    #[serde(default)]
    lose: Loss,
    #[serde(default)]
    twice: Loss,
    #[serde(default)]
    late: Loss,
    /// By how long packets are delayed.
    #[serde(default = "five_milliseconds")]
    by: Span,
    #[serde(default)]
    only: Only,
    #[serde(default)]
    direction: Direction,
    /// For clocks: by how many seconds they are ahead of the right time; negative if they are behind.
    #[serde(default)]
    ahead: i64,
    /// After this time the fault is undone: for example, a program that was killed is started again.
    r#for: Option<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Cut,
    Mend,
    Remove,
    Insert,
    Halt,
    Reboot,
    Kill,
    Pause,
    Continue,
    Packets,
    Clock,
}

impl Fault {
    /// Runs the step.
    ///
    /// # Errors
    /// There is no such host or program, or a program that is started again does not become ready.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let wrong = self.wrong();
        let undone_by = wrong.undone_by();
        let ends = undone_by.is_some() || self.what == What::Kill;
        ensure!(
            self.r#for.is_none() || ends,
            "{:?} ends by itself: leave out `for`",
            self.what
        );
        for host in &self.on {
            world.lab.fault(host, &wrong)?;
        }
        let Some(span) = self.r#for else {
            return Ok(());
        };
        std::thread::sleep(span.0);
        for host in &self.on {
            match &undone_by {
                Some(right) => world.lab.fault(host, right)?,
                None => world.lab.restart(host, &self.thing)?,
            }
        }
        Ok(())
    }

    fn wrong(&self) -> Wrong {
        let thing = self.thing.clone();
        match self.what {
            What::Cut => Wrong::Cut,
            What::Mend => Wrong::Mend,
            What::Remove => Wrong::Remove,
            What::Insert => Wrong::Insert,
            What::Halt => Wrong::Halt,
            What::Reboot => Wrong::Reboot,
            What::Kill => Wrong::Kill { thing },
            What::Pause => Wrong::Pause { thing },
            What::Continue => Wrong::Continue { thing },
            What::Clock => Wrong::Clock { ahead: self.ahead },
            What::Packets => Wrong::Packets(Packets {
                lose: self.lose,
                twice: self.twice,
                late: self.late,
                by: self.by.0,
                only: self.only,
                direction: self.direction,
            }),
        }
    }
}

fn node() -> String {
    "node".to_owned()
}

fn five_milliseconds() -> Span {
    Span(Duration::from_millis(5))
}
