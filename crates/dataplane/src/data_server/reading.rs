//! Connections whose requests the agent reads: what the data server's program knows of them, and what it is told.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use baton_abi::{
    AGENT_METADATA, Door, EARLY_METADATA, HaveRead, Kept, LEAVE_METADATA, MOVE_METADATA,
    QUIET_METADATA, TcbKey,
};
use libbpf_rs::{ErrorKind, MapCore as _, MapFlags, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    DataServer, Error,
    maps::{again, again_program, lookup, map_error},
    sys,
};

/// The maps and the program that the agent of a data server uses to read requests.
pub struct Reading {
    doors: MapHandle,
    doors_begun: MapHandle,
    keeping: MapHandle,
    have_read: MapHandle,
    pass_up: OwnedFd,
    interface: u32,
}

impl DataServer {
    /// Opens what an agent needs to read requests, and to send frames in as if they had come to this interface.
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
        // The program moves the door to the socket with the connection's second packet, which may happen just now.
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
        // The program may be making the first storage of this socket (kernel/bpf/bpf_local_storage.c: -EAGAIN). Then
        // the socket has one the next time.
        let told = match tell() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => tell(),
            told => told,
        };
        told.map_err(|error| map_error("have_read", error))
    }

    /// Tells the program that the agent keeps what it has read of the connection from sequence number `begin` on,
    /// until the connection's next socket has it.
    pub fn keep(&self, flow: &TcbKey, begin: u32) -> Result<(), Error> {
        let kept = Kept {
            received: begin,
            gone: 0,
        };
        let kept = (self.keeping).update(flow.as_bytes(), kept.as_bytes(), MapFlags::ANY);
        kept.map_err(|error| map_error("keeping", error))
    }

    /// What has become known of the connection's socket, on whatever node that is, since the agent began to keep data
    /// of the connection. `None` if the agent keeps nothing.
    pub fn kept(&self, flow: &TcbKey) -> Result<Option<Kept>, Error> {
        lookup("keeping", &self.keeping, flow)
    }

    /// Sends in a frame that a client could have sent. The program knows that the agent sent it in.
    pub fn send(&self, frame: &[u8]) -> Result<(), Error> {
        self.send_as(AGENT_METADATA, frame)
    }

    /// Sends in an empty ACK in a client's name, with room for timestamps. The program writes the acknowledgement
    /// number into it. The connection leaves this data server if that is no longer a member of the connection's pool,
    /// and if the connection is quiet.
    pub fn leave(&self, ack: &[u8]) -> Result<(), Error> {
        self.send_as(LEAVE_METADATA, ack)
    }

    /// Sends in an empty ACK as [`Reading::leave`] does, for a connection that may have come to rest. If it has, the
    /// program tells its connection server.
    pub fn rest(&self, ack: &[u8]) -> Result<(), Error> {
        self.send_as(QUIET_METADATA, ack)
    }

    /// Sends in an empty ACK as [`Reading::leave`] does, for a connection that the agent has and of which nothing is under
    /// way: it moves to the data server of this slot. If it has gone there already, the other data server is told of it
    /// again.
    pub fn move_to(&self, slot: u16, ack: &[u8]) -> Result<(), Error> {
        self.send_as(MOVE_METADATA | u32::from(slot), ack)
    }

    /// Sends in again what the program found to have come too early.
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
