//! `xdp` of a node: how the program of a connection server or switch runs on its interface.

use crate::values::words::words;

/// The mode in which the XDP program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Xdp {
    /// It runs in the driver. If the driver refuses it, the node does not start.
    Native,
    /// It runs in the driver if the driver takes it, else in generic mode.
    Auto,
    /// It runs in generic mode.
    Generic,
}

words!(
    Xdp,
    "xdp",
    Native = "native",
    Auto = "auto",
    Generic = "generic",
);
