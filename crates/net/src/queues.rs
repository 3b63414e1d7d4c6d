//! How many queues a NIC uses and how many it could use: ethtool's channels.

use std::io;

use ethtool::{EthtoolAttr, EthtoolChannelAttr};
use futures_util::TryStreamExt;

use crate::{Error, Result};

/// Numbers of queues that both receive and send ("combined" in `ethtool -l`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// How many are in use.
    pub used: u32,
    /// How many the NIC has.
    pub most: u32,
}

/// The queues of an interface. Must be called within a tokio runtime.
///
/// # Errors
/// [`Error::System`] if there is no such interface, if its driver does not report queues, or if there is no ethtool
/// over netlink (kernels before 5.6).
pub async fn queues(interface: &str) -> Result<Queues> {
    let failed = |error: ethtool::EthtoolError| {
        Error::system(format!("read the queues of {interface}"))(match error {
            ethtool::EthtoolError::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other.to_string()),
        })
    };
    let (connection, mut handle, _) =
        ethtool::new_connection().map_err(Error::system("open the ethtool socket"))?;
    tokio::spawn(connection);
    let request = handle.channel().get(Some(interface)).execute();
    let answers: Vec<_> = request
        .await
        .map_err(failed)?
        .try_collect()
        .await
        .map_err(failed)?;
    let mut found = Queues::default();
    for attribute in answers.into_iter().flat_map(|message| message.payload.nlas) {
        match attribute {
            EthtoolAttr::Channel(EthtoolChannelAttr::CombinedCount(used)) => found.used = used,
            EthtoolAttr::Channel(EthtoolChannelAttr::CombinedMax(most)) => found.most = most,
            _ => {}
        }
    }
    Ok(found)
}
