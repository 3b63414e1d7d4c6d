//! What goes wrong in a cluster, done on purpose: to a cable, a machine, a process, to packets.
//!
//! | fault | what it is like |
//! |---|---|
//! | [`Fault::Cut`], [`Fault::Mend`] | the cable is pulled out, and put in again |
//! | [`Fault::Remove`], [`Fault::Insert`] | the network card is taken out, and another one put in |
//! | [`Fault::Halt`] | the power fails: not a FIN, not a RST |
//! | [`Fault::Reboot`] | and comes back: all starts again as `up` did it |
//! | [`Fault::Kill`], [`Fault::Pause`], [`Fault::Continue`] | a program crashes; hangs; goes on |
//! | [`Fault::Packets`] | a bad cable: packets are lost, doubled, late |
//! | [`Fault::Clock`] | somebody sets the clock wrong: see [`crate::clock`] |
//!
//! Each holds until it is undone, and `down` undoes all.

mod cli;
mod late;
mod packets;
mod power;

use nix::sys::signal::Signal;

pub use self::cli::FaultCommand;
pub use self::packets::{Direction, Only, Packets};
use crate::error::Result;
use crate::file::BRIDGE;
use crate::ready::PATIENCE;
use crate::running::Running;
use crate::state::{self, Lock};
use crate::topology;

/// Something that goes wrong at a host.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Its link has no carrier any more.
    Cut,
    /// It has again.
    Mend,
    /// Its network card is taken out, or its driver unloaded: the interface is gone, with addresses and routes.
    Remove,
    /// Another card is put in, and gets its name, addresses and routes.
    Insert,
    /// The machine loses power. It comes back by [`Fault::Reboot`].
    Halt,
    /// It loses power and starts again, with nothing left in its memory: not a socket, not a program
    /// at its interface. The files of its programs are as they were.
    Reboot,
    /// Something that runs on it, by its name in the lab file, ends at once, with all it has started.
    Kill(String),
    /// It stands still.
    Pause(String),
    /// It goes on.
    Continue(String),
    /// What happens to the packets of its link, in place of what was said before.
    Packets(Packets),
    /// The wall clock of its programs, which must be its own (`own_clock`), is so many seconds ahead of the
    /// right time, or behind it. They look within two seconds.
    Clock(i64),
}

impl Running {
    /// Does it.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchHost`], [`crate::Error::NoSuchThing`], [`crate::Error::NotUp`];
    /// [`crate::Error::NotReady`] after a reboot; a tool that refuses.
    pub fn fault(&self, host: &str, fault: &Fault) -> Result<()> {
        match fault {
            Fault::Cut => self.link(host, false),
            Fault::Mend => self.link(host, true),
            Fault::Remove => self.card(host, false),
            Fault::Insert => self.card(host, true),
            Fault::Halt => self.halt(host),
            Fault::Reboot => self.reboot(host, PATIENCE),
            Fault::Kill(thing) => self.kill(host, thing, Signal::SIGKILL),
            Fault::Pause(thing) => self.kill(host, thing, Signal::SIGSTOP),
            Fault::Continue(thing) => self.kill(host, thing, Signal::SIGCONT),
            Fault::Packets(packets) => self.disturb(host, packets),
            Fault::Clock(ahead) => self.set_clock(host, *ahead),
        }
    }

    fn link(&self, host: &str, up: bool) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        let state = self.state()?;
        let host = self.file_host(host)?;
        topology::carrier(self.namespace(&state, BRIDGE)?, host, up)
    }

    fn card(&self, host: &str, is_in: bool) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        let state = self.state()?;
        let file_host = self.file_host(host)?;
        let bridge = self.namespace(&state, BRIDGE)?;
        if !is_in {
            return topology::remove(bridge, host);
        }
        let directory = state::host_directory(&self.lab().name, host);
        let inside = self.namespace(&state, host)?;
        topology::insert(bridge, inside, file_host, &directory)
    }
}

impl Fault {
    /// What ends it; none, if it ends by itself or nothing can.
    pub fn undone_by(&self) -> Option<Fault> {
        match self {
            Fault::Cut => Some(Fault::Mend),
            Fault::Remove => Some(Fault::Insert),
            Fault::Halt => Some(Fault::Reboot),
            Fault::Pause(thing) => Some(Fault::Continue(thing.clone())),
            Fault::Packets(_) => Some(Fault::Packets(Packets::default())),
            Fault::Clock(_) => Some(Fault::Clock(0)),
            Fault::Mend | Fault::Insert | Fault::Reboot | Fault::Kill(_) | Fault::Continue(_) => {
                None
            }
        }
    }
}
