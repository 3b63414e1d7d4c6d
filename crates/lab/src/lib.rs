//! A cluster of network namespaces on one machine, made from one TOML file, to try, test and measure
//! baton.
//!
//! ```text
//!   client       cs1        ds1          each a namespace  baton-LAB-HOST  with one eth0
//!     |eth0       |eth0      |eth0
//!     |client     |cs1       |ds1        ports named after the hosts
//!   +--------------------------------+
//!   |            br0                 |   the namespace  baton-LAB-bridge
//!   +--------------------------------+
//! ```
//!
//! Everything outside the namespaces stays as it is: no address, route or rule of the machine itself
//! changes. A lab records each thing that it makes in /run/baton-lab/LAB/lab.json, so that [`down`]
//! undoes exactly that. It ends a process only if pid and start time match, and removes a namespace
//! only if its inode matches. Only large files that never change stay, in /var/tmp/baton-lab.
//!
//! ```no_run
//! use baton_lab::{Fault, Lab, Options, Running};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lab = Lab::parse(&std::fs::read_to_string("labs/split.toml")?)?;
//! let running = lab.up(&Options::new("target/release/baton"), |step| eprintln!("{step}"))?;
//! let answer = running.exec("client")?.args(["curl", "-s", "http://10.77.0.100/whoami"]).output()?;
//! running.fault("client", &Fault::Cut)?;
//! running.down()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod certificates;
mod cgroup;
pub mod cli;
mod clock;
mod config;
mod down;
mod error;
mod fault;
mod file;
mod needs;
mod netns;
mod nft;
mod process;
mod ready;
mod running;
pub mod servers;
mod start;
mod state;
mod tool;
mod topology;
mod up;

pub use down::{Down, down};
pub use error::{Error, LogTail, Result};
pub use fault::{Direction, Fault, Only, Packets};
pub use file::{
    BRIDGE, Config, Cpu, Host, HostAddress, HostName, Lab, LabName, Link, Loss, Mtu, Port, Program,
    Rate, Role, Server, ServerKind, Thing, ThingName,
};
pub use nft::Counted;
pub use nix::sys::signal::Signal;
pub use ready::PATIENCE;
pub use running::{HostView, Running, ThingView};
pub use up::Options;
