//! A step that sends a recorded ADOPT again.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use baton_lab::BRIDGE;
use baton_lab::Signal;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::Deserialize;

use crate::frames::{self, Frame};
use crate::span::{Span, seconds};
use crate::step::clients::http::{ask, connect_to};
use crate::wait::{patience, until};
use crate::world::World;

/// Records the ADOPT by which a data server got a connection, and has the client send it again while the connection
/// lives. The connection must go on as if nothing had happened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The data server that adopts the connection.
    at: String,
    times: usize,
    /// How much time passes before the recording is sent.
    #[serde(default = "at_once")]
    after: Span,
}

/// The offset of be_client_port (struct lccp_header in bpf/abi/lccp.h) in the frame of an ADOPT: behind the Ethernet
/// header and the outer IPv4 header.
const PORT_AT: usize = 14 + 20 + 40;

impl Replay {
    /// Runs the step.
    ///
    /// # Errors
    /// The replay disturbed the connection.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let file = world.scratch.path().join("adopt.pcap");
        // Receptor 2 is a data server, command 1 is ADOPT.
        let adopts = "ip proto 253 and ip[21] = 2 and ip[22] = 1";
        let recorder = record(world, &self.at, &file, adopts)?;
        let opened = world.lab.within("client", || connect_to(&self.at));
        let found = opened?.and_then(|stream| {
            let port = stream.local_addr()?.port();
            Ok((stream, wait_for(&file, PORT_AT, port)?))
        });
        stop(recorder)?;
        let (mut stream, frame) = found?;
        std::thread::sleep(self.after.0);
        frames::send(
            world,
            "client",
            &vec![from(frame, frames::mac(world, "client")?); self.times],
        )?;
        for _ in 0..3 {
            let answer = ask(&mut stream).context("after the replay")?;
            ensure!(
                answer == self.at,
                "{answer} answers in place of {}",
                self.at
            );
        }
        Ok(())
    }
}

/// Sets the client's own MAC address as the frame's sender: another node's address would mislead the bridge.
fn from(mut frame: Frame, mac: [u8; 6]) -> Frame {
    frame[6..12].copy_from_slice(&mac);
    frame
}

/// Records the packets that pass the bridge's port to a host and match the filter `which`. Returns once tcpdump
/// listens.
pub(crate) fn record(world: &World, port: &str, file: &Path, which: &str) -> Result<Child> {
    let mut tcpdump = world.lab.exec(BRIDGE)?;
    // The options have every packet written at once.
    tcpdump
        .args([
            "tcpdump",
            "--immediate-mode",
            "-U",
            "-Z",
            "root",
            "-n",
            "-i",
            port,
            "-w",
        ])
        .arg(file);
    tcpdump.arg(which).stderr(Stdio::piped());
    let mut child = tcpdump.spawn().context("cannot run tcpdump")?;
    let said = child
        .stderr
        .take()
        .context("tcpdump has no standard error")?;
    for line in BufReader::new(said).lines() {
        if line?.contains("listening on") {
            return Ok(child);
        }
    }
    bail!("tcpdump does not listen on {port}")
}

pub(crate) fn stop(mut recorder: Child) -> Result<()> {
    kill(Pid::from_raw(recorder.id().cast_signed()), Signal::SIGINT)?;
    recorder.wait()?;
    Ok(())
}

/// Waits until the file has the packet of this client port, and returns its frame. A packet that was sent is in the
/// file only once tcpdump has read it from the kernel.
pub(crate) fn wait_for(file: &Path, port_at: usize, port: u16) -> Result<Frame> {
    until(patience(), || {
        let found = find(&std::fs::read(file)?, port_at, port);
        found.context("no packet of the connection was recorded")
    })
}

/// The first recorded frame that has this client port at offset `port_at`. The file's format is that of
/// pcap-savefile(5), in this machine's byte order.
fn find(file: &[u8], port_at: usize, port: u16) -> Option<Frame> {
    const FILE_HEADER: usize = 24;
    const PACKET_HEADER: usize = 16;
    const LENGTH_AT: usize = 8;
    let mut rest = file.get(FILE_HEADER..)?;
    loop {
        let length = u32::from_ne_bytes(*rest.get(LENGTH_AT..)?.first_chunk()?) as usize;
        let frame = rest.get(PACKET_HEADER..)?.get(..length)?;
        if frame.get(port_at..)?.first_chunk() == Some(&port.to_be_bytes()) {
            return Some(frame.to_vec());
        }
        rest = rest.get(PACKET_HEADER + length..)?;
    }
}

fn at_once() -> Span {
    seconds(0)
}
