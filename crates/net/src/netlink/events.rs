//! Changes of interfaces, as the kernel reports them.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use rtnetlink::MulticastGroup;

use crate::{Error, Result};

/// A routing socket that reports whenever an interface or an IPv4 address is added, changed or removed.
pub struct LinkEvents(Pin<Box<dyn Stream<Item = ()> + Send>>);

impl LinkEvents {
    /// Opens the socket; it reports changes from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel gives no netlink socket.
    pub fn open() -> Result<Self> {
        let groups = [MulticastGroup::Link, MulticastGroup::Ipv4Ifaddr];
        let (connection, _, events) = rtnetlink::new_multicast_connection(&groups)
            .map_err(Error::system("listen to the events of interfaces"))?;
        tokio::spawn(connection);
        Ok(Self(Box::pin(events.map(drop))))
    }

    /// Waits for the next change. The caller has to look up what changed, because the kernel drops events that are not
    /// read in time. Returns `false` if no more changes will be reported.
    pub async fn next(&mut self) -> bool {
        self.0.next().await.is_some()
    }
}
