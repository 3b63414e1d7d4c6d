//! What can go wrong between the daemon and the kernel's BPF.

use std::{io, path::PathBuf};

use crate::kernel::Refusal;

/// Every error names what was being done and, where somebody can mend it, how.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Error {
    #[error(
        "cannot prepare {path}: {cause}; baton needs a BPF file system there (mount -t bpf bpf /sys/fs/bpf) and root"
    )]
    Pins { path: PathBuf, cause: io::Error },
    #[error("cannot read the BPF programs of this version: {reason}")]
    Open { reason: String },
    #[error("cannot load the BPF programs: {0}")]
    Load(Box<Refusal>),
    #[error(
        "the connections here cannot be taken over: in {dir}, {reason}. The packet path goes on unchanged. Start the version and configuration that made it; or move the connections away, run `baton teardown --config FILE` and start again; or start once with --fresh: then data servers are asked who has each connection, and it stays where it is until it ends"
    )]
    Layout { dir: PathBuf, reason: String },
    #[error(
        "the connections here cannot be taken over: in {dir}, {reason}. The packet path goes on unchanged. Start the version that made it; or drain this data server, and start once with --fresh: then a connection that is still here ends with its next request"
    )]
    DoorLayout { dir: PathBuf, reason: String },
    #[error(
        "the programs' sockets here cannot be taken over: in {dir}, {reason}. Nothing is changed. Start the version that made them; or end the programs, run `baton teardown --config FILE` and start again; or start once with --fresh: then programs that listen must be started again, and cannot be reached until then"
    )]
    AppLayout { dir: PathBuf, reason: String },
    #[error("cannot attach the {program} program to interface {interface}: {cause}{hint}")]
    Attach {
        program: &'static str,
        interface: u32,
        cause: io::Error,
        hint: String,
    },
    #[error(
        "cannot attach the program for socket events to a control group of this machine: {cause}"
    )]
    AttachSockets { cause: io::Error },
    #[error(
        "cannot attach the {program} program to the control group {group}: {cause}; it must be of version 2, and baton needs root"
    )]
    AttachGroup {
        program: &'static str,
        group: PathBuf,
        cause: io::Error,
    },
    #[error("BPF map {map}: {reason}")]
    Map { map: &'static str, reason: String },
    #[error("running the {program} program: {cause}")]
    Run {
        program: &'static str,
        cause: io::Error,
    },
}
