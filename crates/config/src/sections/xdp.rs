//! `xdp` of a node: how the program of a connection server or switch runs on its interface.

use crate::values::words::words;

words! {
    /// The mode in which the XDP program runs.
    pub enum Xdp "xdp" {
        /// It runs in the driver. If the driver refuses it, the node does not start.
        Native = "native",
        /// It runs in the driver if the driver takes it, else in generic mode.
        Auto = "auto",
        /// It runs in generic mode.
        Generic = "generic",
    }
}
