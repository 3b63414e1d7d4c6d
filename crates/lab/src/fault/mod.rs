//! Faults, caused on purpose: of a cable, a machine, a process, or of packets.
//!
//! | fault | what it is like |
//! |---|---|
//! | [`Fault::Cut`], [`Fault::Mend`] | the cable is pulled out, and put in again |
//! | [`Fault::Remove`], [`Fault::Insert`] | the network card is taken out, and another one put in |
//! | [`Fault::Halt`] | the power fails: not a FIN, not a RST |
//! | [`Fault::Reboot`] | the power fails and comes back: everything starts again as `up` started it |
//! | [`Fault::Kill`], [`Fault::Pause`], [`Fault::Continue`] | a program crashes; hangs; goes on |
//! | [`Fault::Packets`] | a bad cable: packets are lost, doubled, late |
//! | [`Fault::Clock`] | somebody sets the clock wrong: see [`crate::clock`] |
//!
//! Each fault lasts until it is undone, and `down` undoes all of them.

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

/// A fault of a host, or the end of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The links of the host have no carrier anymore.
    Cut,
    /// The links of the host have their carrier again.
    Mend,
    /// The host's network card is taken out, or its driver unloaded: the interface is gone, with addresses and routes.
    Remove,
    /// Another network card is put in, and gets the name, addresses and routes of the one before.
    Insert,
    /// The host loses power. [`Fault::Reboot`] brings it back.
    Halt,
    /// The host loses power and starts again. Nothing is left in its memory: no socket, and no program at
    /// its interface. The files of its programs are as they were.
    Reboot,
    /// A program of the host, by its name in the lab file, is killed with everything that it has started.
    Kill(String),
    /// A program of the host, by its name in the lab file, is stopped (`SIGSTOP`).
    Pause(String),
    /// A program of the host that was stopped goes on (`SIGCONT`).
    Continue(String),
    /// Packets of the host's link are lost, doubled or late, as said here and no longer as said before.
    Packets(Packets),
    /// The wall clock of the host's programs is so many seconds ahead of the right time, or behind it if negative.
    /// The host must have `own_clock`. Its programs see the change within two seconds.
    Clock(i64),
}

impl Running {
    /// Causes a fault at a host, or ends one.
    ///
    /// # Errors
    /// [`crate::Error::NoSuchHost`], [`crate::Error::NoSuchThing`], [`crate::Error::NotUp`];
    /// [`crate::Error::NotReady`] after a reboot; [`crate::Error::Tool`] if a tool fails.
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
    /// The fault that ends this one; `None` if this one ends by itself or nothing can end it.
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
