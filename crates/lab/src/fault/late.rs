//! Late packets: a process in user space holds them for a while (`late.py`).
//!
//! ```text
//!  port --fwd--> late.N.f ==== late.N.fp --> late.py --> late.N.fp ==== late.N.f --> the bridge
//!  the bridge --fwd--> late.N.t ==== late.N.tp --> late.py --> port
//! ```
//!
//! Each queue is a veth. The queue for what a host sends is a port of the bridge itself, with learning and
//! flooding off, so its packets go on as if they had come by the host's own port.

use std::time::Duration;

use super::direction::Direction;
use crate::error::{Doing, Error, LogTail, Result};
use crate::file::{BRIDGE, Host, Lab};
use crate::netns::Namespace;
use crate::process::{self, Start};
use crate::ready::PATIENCE;
use crate::state::{self, State};
use crate::{start, tool, topology};

/// The mark of packets that have been late, by which the same rules let them pass the second time.
pub(super) const LATE: u32 = 0x00ba_702f;

const PROGRAM: &str = include_str!("late.py");

/// Makes a queue and starts the process that holds its packets.
pub(super) fn begin(
    state: &mut State,
    lab: &Lab,
    bridge: &Namespace,
    host: &Host,
    queue: &str,
    way: Direction,
    by: Duration,
) -> Result<()> {
    let inside = &bridge.name;
    let end = format!("{queue}p");
    tool::run(&format!(
        "ip -n {inside} link add name {queue} type veth peer name {end}"
    ))?;
    for device in [queue, &end] {
        // Without an address the device sends nothing itself. A kernel without IPv6 refuses this command.
        let _ = tool::run(&format!(
            "ip -n {inside} link set dev {device} addrgenmode none"
        ));
    }
    // In user space a packet must be as on a wire: with its checksum, and no longer than the MTU.
    topology::plain(bridge, queue)?;
    let out = match way {
        Direction::From => {
            topology::silent_port(bridge, queue, host)?;
            end.as_str()
        }
        Direction::To | Direction::Both => host.name.as_str(),
    };
    for device in [queue, &end] {
        tool::run(&format!("ip -n {inside} link set dev {device} up"))?;
    }
    let directory = state::host_directory(&lab.name, BRIDGE);
    let program = directory.join("late.py");
    std::fs::write(&program, PROGRAM).doing(|| format!("write {}", program.display()))?;
    let ready = directory.join(format!("{queue}.ready"));
    let words = [
        tool::find("python3")?.display().to_string(),
        program.display().to_string(),
        end.clone(),
        out.to_owned(),
        by.as_secs_f64().to_string(),
        LATE.to_string(),
        ready.display().to_string(),
    ];
    let start = Start {
        host: BRIDGE.to_owned(),
        thing: thing(host.name.as_str(), queue),
        words: words.to_vec(),
        leftovers: vec![ready.clone()],
        log: directory.join("late.log"),
        directory,
    };
    let process = start::start(start, bridge, None)?;
    state.processes.push(process.clone());
    state.save()?;
    if process::wait_until(PATIENCE, || ready.exists() || !process.is_alive()) && ready.exists() {
        return Ok(());
    }
    Err(Error::NotReady {
        host: BRIDGE.to_owned(),
        thing: process.start.thing.clone(),
        waited: PATIENCE,
        why: "it has ended, or takes too long to start".to_owned(),
        log: Box::new(LogTail::of(&process.start.log)),
    })
}

/// Ends the processes that hold packets of this host's link. The packets that they hold are lost.
pub(super) fn end(state: &mut State, bridge: &Namespace, host: &str) -> Result<()> {
    let (ours, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.processes)
        .into_iter()
        .partition(|one| one.start.host == BRIDGE && one.start.thing.starts_with(&thing(host, "")));
    state.processes = others;
    if let Some(error) = process::end(&ours, crate::down::PATIENCE).pop() {
        return Err(error);
    }
    for process in ours {
        let queue = process.start.thing.replacen(&thing(host, ""), "", 1);
        tool::run(&format!("ip -n {} link del dev {queue}", bridge.name))?;
    }
    state.save()
}

fn thing(host: &str, queue: &str) -> String {
    format!("{host}:{queue}")
}
