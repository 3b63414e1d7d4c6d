//! What goes wrong in the lab: crates/lab says what each is like.

use std::time::Duration;

use anyhow::{Result, ensure};
use baton_lab::{Direction, Fault as Wrong, Loss, Only, Packets};
use serde::Deserialize;

use crate::span::Span;
use crate::world::World;

/// Does it, and, where it says for how long, undoes it after that.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Hosts, one after the other.
    on: Vec<String>,
    what: What,
    /// What is killed, paused or continued.
    #[serde(default = "node")]
    thing: String,
    /// Of packets: parts of them, 0 to 1.
    #[serde(default)]
    lose: Loss,
    #[serde(default)]
    twice: Loss,
    #[serde(default)]
    late: Loss,
    /// How late.
    #[serde(default = "five_milliseconds")]
    by: Span,
    #[serde(default)]
    only: Only,
    #[serde(default)]
    direction: Direction,
    /// Of clocks: by how many seconds they are ahead of the right time; behind it, if negative.
    #[serde(default)]
    ahead: i64,
    /// Then it is undone: what was killed is started again.
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
    /// Does it.
    ///
    /// # Errors
    /// No such host or thing; what starts again does not become ready.
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
            What::Kill => Wrong::Kill(thing),
            What::Pause => Wrong::Pause(thing),
            What::Continue => Wrong::Continue(thing),
            What::Clock => Wrong::Clock(self.ahead),
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
