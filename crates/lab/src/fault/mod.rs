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

mod direction;
mod late;
pub(crate) mod packets;
mod power;

use nix::sys::signal::Signal;

pub use self::direction::Direction;
pub use self::packets::{Only, Packets};
use crate::error::{Error, Result};
use crate::file::BRIDGE;
use crate::ready::PATIENCE;
use crate::running::Running;
use crate::state::{self, Lock};
use crate::{clock, topology};

/// A fault of a host, or the end of one. The comments are also the help of `baton lab fault`.
#[derive(Clone, Debug, PartialEq, clap::Subcommand)]
pub enum Fault {
    /// Pull out its cable
    Cut,
    /// Put it in again
    Mend,
    /// Take its network card out: its first interface is gone
    Remove,
    /// Put another one in, with the same name and addresses
    Insert,
    /// Let its power fail, without a FIN or RST; `reboot` brings it back
    Halt,
    /// Let its power fail and come back: all that `up` started starts again
    // Nothing is left in its memory: no socket, and no program at its interface. Its files are as they were.
    Reboot,
    /// End a program at once, with all it has started
    Kill {
        /// What the lab file calls it: "node", "nginx", …
        #[arg(value_name = "PROGRAM")]
        thing: String,
    },
    /// Pause a program
    Pause {
        /// What the lab file calls it: "node", "nginx", …
        #[arg(value_name = "PROGRAM")]
        thing: String,
    },
    /// Let a paused program go on
    Continue {
        /// What the lab file calls it: "node", "nginx", …
        #[arg(value_name = "PROGRAM")]
        thing: String,
    },
    /// Let packets of its link be lost, arrive twice or arrive late, in place of earlier settings; without options
    /// the link is good again
    Packets(Packets),
    /// Set the clock of its programs wrong, or right again; for hosts with `own_clock` in the lab file
    // Its programs see the change within two seconds.
    Clock {
        /// Seconds ahead of the right time; behind it, if negative
        #[arg(allow_negative_numbers = true)]
        ahead: i64,
    },
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
            Fault::Kill { thing } => self.kill(host, thing, Signal::SIGKILL),
            Fault::Pause { thing } => self.kill(host, thing, Signal::SIGSTOP),
            Fault::Continue { thing } => self.kill(host, thing, Signal::SIGCONT),
            Fault::Packets(packets) => self.disturb(host, packets),
            Fault::Clock { ahead } => self.set_clock(host, *ahead),
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

    fn set_clock(&self, host: &str, ahead: i64) -> Result<()> {
        let _lock = Lock::lab(self.lab().name(), &mut |_| {})?;
        if !self.file_host(host)?.own_clock {
            return Err(Error::NoOwnClock(host.to_owned()));
        }
        clock::set(&state::host_directory(self.lab().name(), host), ahead)
    }
}

impl Fault {
    /// The fault that ends this one; `None` if this one ends by itself or nothing can end it.
    pub fn undone_by(&self) -> Option<Fault> {
        match self {
            Fault::Cut => Some(Fault::Mend),
            Fault::Remove => Some(Fault::Insert),
            Fault::Halt => Some(Fault::Reboot),
            Fault::Pause { thing } => Some(Fault::Continue {
                thing: thing.clone(),
            }),
            Fault::Packets(_) => Some(Fault::Packets(Packets::default())),
            Fault::Clock { .. } => Some(Fault::Clock { ahead: 0 }),
            Fault::Mend
            | Fault::Insert
            | Fault::Reboot
            | Fault::Kill { .. }
            | Fault::Continue { .. } => None,
        }
    }
}
