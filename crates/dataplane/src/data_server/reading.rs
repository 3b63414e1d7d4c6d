//! Connections whose requests the agent reads: what the data server's program knows of them, and what it is told.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use baton_abi::{
    AGENT_METADATA, Door, EARLY_METADATA, HaveRead, Kept, LEAVE_METADATA, QUIET_METADATA, TcbKey,
};
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    DataServer, Error,
    maps::{again, again_program, lookup, map_error},
    sys,
};

/// On a data server.
pub struct Reading {
    doors: MapHandle,
    doors_begun: MapHandle,
    keeping: MapHandle,
    have_read: MapHandle,
    pass_up: OwnedFd,
    interface: u32,
}

impl DataServer {
    /// What an agent needs that reads requests, and sends frames in as if they had come to this interface.
    pub fn reading(&self, interface: u32) -> Result<Reading, Error> {
        Ok(Reading {
            doors: again("doors", &self.doors)?,
            doors_begun: again("doors_begun", &self.doors_begun)?,
            keeping: again("keeping", &self.keeping)?,
            have_read: again("have_read", &self.have_read)?,
            pass_up: again_program("doors", &self.pass_up)?,
            interface,
        })
    }
}

impl Reading {
    /// The door of the connection that this socket has, in the same network namespace.
    pub fn door(&self, socket: BorrowedFd<'_>, flow: &TcbKey) -> Result<Option<Door>, Error> {
        let with_socket = || lookup("doors", &self.doors, &socket.as_raw_fd());
        // The program puts it to the socket with the connection's second packet, which may be just now.
        for _ in 0..2 {
            if let Some(door) = with_socket()? {
                return Ok(Some(door));
            }
            if let Some(door) = lookup("doors_begun", &self.doors_begun, flow)? {
                return Ok(Some(door));
            }
        }
        Ok(None)
    }

    /// Tells the program what was read of the request that this socket's connection begins with.
    pub fn tell(&self, socket: BorrowedFd<'_>, read: &HaveRead) -> Result<(), Error> {
        let key = socket.as_raw_fd().to_ne_bytes();
        let tell = || self.have_read.update(&key, read.as_bytes(), MapFlags::ANY);
        // The program may be making the first storage of this socket (kernel/bpf/bpf_local_storage.c: -EAGAIN): then it has one
        // the next time.
        let told = match tell() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => tell(),
            told => told,
        };
        told.map_err(|error| map_error("have_read", error))
    }

    /// From that sequence number on, the agent keeps what it has read of the connection, until its next socket has it.
    pub fn keep(&self, flow: &TcbKey, begin: u32) -> Result<(), Error> {
        let kept = Kept {
            received: begin,
            gone: 0,
        };
        let kept = (self.keeping).update(flow.as_bytes(), kept.as_bytes(), MapFlags::ANY);
        kept.map_err(|error| map_error("keeping", error))
    }

    /// What is known of the connection's socket, wherever that is, since the agent keeps something of it; `None`: it does not.
    pub fn kept(&self, flow: &TcbKey) -> Result<Option<Kept>, Error> {
        lookup("keeping", &self.keeping, flow)
    }

    /// A frame that a client could have sent comes in. The program knows that it is from here.
    pub fn send(&self, frame: &[u8]) -> Result<(), Error> {
        self.send_as(AGENT_METADATA, frame)
    }

    /// An empty ACK in a client's name, with room for timestamps: its connection leaves this data server, if that is no member
    /// of its pool any more and the connection is quiet. What it acknowledges the program writes in.
    pub fn leave(&self, ack: &[u8]) -> Result<(), Error> {
        self.send_as(LEAVE_METADATA, ack)
    }

    /// The same of a connection that may have come to rest: if it has, the program tells its connection server.
    pub fn rest(&self, ack: &[u8]) -> Result<(), Error> {
        self.send_as(QUIET_METADATA, ack)
    }

    /// What the program found to come too early comes in again.
    pub fn send_early(&self, frame: &[u8]) -> Result<(), Error> {
        self.send_as(EARLY_METADATA, frame)
    }

    fn send_as(&self, metadata: u32, frame: &[u8]) -> Result<(), Error> {
        let metadata = metadata.to_ne_bytes();
        sys::run_live(self.pass_up.as_fd(), &metadata, frame, self.interface).map_err(|cause| {
            Error::Run {
                program: "pass_up",
                cause,
            }
        })
    }
}
