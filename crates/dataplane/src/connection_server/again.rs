//! Runs frames that user space was shown through the connection server's program once more.

use std::os::fd::{AsFd as _, OwnedFd};

use crate::{ConnectionServer, Error, maps::again_program, sys};

/// `enum xdp_action` (`include/uapi/linux/bpf.h`).
pub(crate) const XDP_PASS: u32 = 2;
pub(crate) const XDP_TX: u32 = 3;
pub(crate) const XDP_REDIRECT: u32 = 4;

/// What came of a frame that ran through the program again.
#[derive(Debug, PartialEq, Eq)]
pub enum Resumed {
    /// This frame is to leave by the interface whose MAC address it comes from.
    Leaves(Vec<u8>),
    /// The kernel has it: its data server is this node.
    Done,
    /// The program dropped it, and counted why.
    Dropped,
    /// The frame is longer than what the kernel runs through a program once more. The connection has its entry by now,
    /// so its client's next try goes the same way without user space.
    TooLong,
}

/// The length of the longest frame with which the kernel can do what the program decides. Headroom, tail and the
/// kernel's own notes need the rest of a page (`bpf_prog_test_run_xdp` in net/bpf/test_run.c).
const LONGEST_LIVE: usize = 3072;

/// A second handle to the connection server's program, and to the one that passes frames up.
pub(crate) struct Again {
    program: OwnedFd,
    pass_up: OwnedFd,
}

impl ConnectionServer {
    pub(crate) fn again(&self) -> Result<Again, Error> {
        Ok(Again {
            program: again_program("held", &self.xdp)?,
            pass_up: again_program("held", &self.pass_up)?,
        })
    }
}

impl Again {
    /// Runs the program as if the frame had come to this interface.
    pub fn run(&self, frame: &[u8], interface: u32) -> Result<Resumed, Error> {
        let outcome =
            sys::run_on_arrival(self.program.as_fd(), &[], frame, interface).map_err(failed)?;
        match outcome.verdict {
            XDP_TX | XDP_REDIRECT => Ok(Resumed::Leaves(outcome.frame)),
            XDP_PASS => self.pass_up(&outcome.frame, interface),
            _ => Ok(Resumed::Dropped),
        }
    }

    /// Passes the frame up to the kernel, because its data server is this node.
    fn pass_up(&self, frame: &[u8], interface: u32) -> Result<Resumed, Error> {
        if frame.len() > LONGEST_LIVE {
            return Ok(Resumed::TooLong);
        }
        sys::run_live(self.pass_up.as_fd(), &[], frame, interface).map_err(failed)?;
        Ok(Resumed::Done)
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::Run {
        program: "cs",
        cause,
    }
}
