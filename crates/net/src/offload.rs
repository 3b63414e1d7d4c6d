//! The work that a NIC takes over from the kernel, and what it does to packets on the way: ethtool's features.

use std::collections::HashSet;
use std::io;

use ethtool::{EthtoolAttr, EthtoolFeatureAttr};
use futures_util::TryStreamExt;

use crate::{Error, Result};

/// The features that are switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloads(HashSet<String>);

impl Offloads {
    /// Whether the NIC merges segments before any program sees them, so that the original ones cannot be told apart.
    pub fn large_receive(&self) -> bool {
        self.0.contains("rx-lro")
    }

    /// Whether the kernel merges the segments of a stream before any program but a native XDP program sees them.
    pub fn generic_receive(&self) -> bool {
        self.0.contains("rx-gro")
    }

    /// Whether the NIC takes VLAN tags out of frames.
    pub fn takes_tags_off(&self) -> bool {
        self.0.contains("rx-vlan-hw-parse")
    }
}

/// The features that are switched on at an interface. Must be called within a tokio runtime.
///
/// # Errors
/// [`Error::System`] if there is no such interface, or no ethtool over netlink (kernels before 5.6).
pub async fn offloads(interface: &str) -> Result<Offloads> {
    let failed = |error: ethtool::EthtoolError| {
        Error::system(format!("read the features of {interface}"))(match error {
            ethtool::EthtoolError::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other.to_string()),
        })
    };
    let (connection, mut handle, _) =
        ethtool::new_connection().map_err(Error::system("open the ethtool socket"))?;
    tokio::spawn(connection);
    let request = handle.feature().get(Some(interface)).execute();
    let answers: Vec<_> = request
        .await
        .map_err(failed)?
        .try_collect()
        .await
        .map_err(failed)?;
    let active = answers
        .into_iter()
        .flat_map(|message| message.payload.nlas)
        .filter_map(|attribute| match attribute {
            EthtoolAttr::Feature(EthtoolFeatureAttr::Active(bits)) => Some(bits),
            _ => None,
        })
        .flatten()
        .filter(|bit| bit.value);
    Ok(Offloads(active.map(|bit| bit.name).collect()))
}
