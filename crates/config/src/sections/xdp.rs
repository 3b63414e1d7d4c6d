//! `xdp` of a node: how the program of a connection server or switch runs on its interface.

use std::fmt;
use std::str::FromStr;

use crate::reading::problem::Problem;
use crate::service::one_of;

/// The mode in which the XDP program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Xdp {
    /// It runs in the driver. If the driver refuses it, the node does not start.
    #[default]
    Native,
    /// It runs in the driver if the driver takes it, else in generic mode.
    Auto,
    /// It runs in generic mode.
    Generic,
}

const ALL: [Xdp; 3] = [Xdp::Native, Xdp::Auto, Xdp::Generic];

impl Xdp {
    /// The name of the mode in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Auto => "auto",
            Self::Generic => "generic",
        }
    }
}

impl fmt::Display for Xdp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Xdp {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        one_of("xdp", text, &ALL.map(|xdp| (xdp.as_str(), xdp)))
    }
}
