//! `baton lab fault HOST …`.

use std::time::Duration;

use super::{Direction, Fault, Only, Packets};
use crate::file::Loss;

/// What goes wrong at the host, until it is undone.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum FaultCommand {
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
    Reboot,
    /// End a program at once, with all it has started
    Kill(Which),
    /// Pause a program
    Pause(Which),
    /// Let a paused program go on
    Continue(Which),
    /// Let packets of its link be lost, arrive twice or arrive late, in place of earlier settings; without options
    /// the link is good again
    Packets(PacketsCommand),
    /// Set the clock of its programs wrong, or right again; for hosts with `own_clock` in the lab file
    Clock {
        /// Seconds ahead of the right time; behind it, if negative
        #[arg(allow_negative_numbers = true)]
        ahead: i64,
    },
}

/// A program of a host.
#[derive(Clone, Debug, clap::Args)]
pub struct Which {
    /// What the lab file calls it: "node", "nginx", …
    program: String,
}

/// Parts are of the packets that are meant, 0 to 1.
#[derive(Clone, Debug, clap::Args)]
pub struct PacketsCommand {
    /// Share of the packets that never arrive, 0 to 1
    #[arg(long, default_value = "0", value_parser = part)]
    lose: Loss,
    /// Share of the packets that arrive twice, 0 to 1
    #[arg(long, default_value = "0", value_parser = part)]
    twice: Loss,
    /// Share of the packets that arrive late, 0 to 1; unless it is 1, other packets overtake them
    #[arg(long, default_value = "0", value_parser = part)]
    late: Loss,
    /// Delay of packets that arrive late, in milliseconds
    #[arg(long, default_value_t = 5)]
    by: u64,
    /// Which packets: all, lccp (messages between nodes), tcp
    #[arg(long, default_value = "all", value_parser = only)]
    only: Only,
    /// Which direction: both, from (from the host) or to (to the host)
    #[arg(long, default_value = "both", value_parser = direction)]
    direction: Direction,
}

impl From<FaultCommand> for Fault {
    fn from(command: FaultCommand) -> Fault {
        match command {
            FaultCommand::Cut => Fault::Cut,
            FaultCommand::Mend => Fault::Mend,
            FaultCommand::Remove => Fault::Remove,
            FaultCommand::Insert => Fault::Insert,
            FaultCommand::Halt => Fault::Halt,
            FaultCommand::Reboot => Fault::Reboot,
            FaultCommand::Kill(which) => Fault::Kill(which.program),
            FaultCommand::Pause(which) => Fault::Pause(which.program),
            FaultCommand::Continue(which) => Fault::Continue(which.program),
            FaultCommand::Packets(packets) => Fault::Packets(packets.into()),
            FaultCommand::Clock { ahead } => Fault::Clock(ahead),
        }
    }
}

impl From<PacketsCommand> for Packets {
    fn from(said: PacketsCommand) -> Packets {
        Packets {
            lose: said.lose,
            twice: said.twice,
            late: said.late,
            by: Duration::from_millis(said.by),
            only: said.only,
            direction: said.direction,
        }
    }
}

fn part(text: &str) -> Result<Loss, String> {
    let fraction: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no number; write 0.01 for one in a hundred"))?;
    Loss::new(fraction)
}

fn only(text: &str) -> Result<Only, String> {
    match text {
        "all" => Ok(Only::All),
        "lccp" => Ok(Only::Lccp),
        "tcp" => Ok(Only::Tcp),
        _ => Err("write all, lccp or tcp".to_owned()),
    }
}

fn direction(text: &str) -> Result<Direction, String> {
    match text {
        "both" => Ok(Direction::Both),
        "from" => Ok(Direction::From),
        "to" => Ok(Direction::To),
        _ => Err("write both, from or to".to_owned()),
    }
}
