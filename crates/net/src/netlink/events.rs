//! What happens to interfaces, as the kernel tells it.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _};
use rtnetlink::MulticastGroup;

use crate::{Error, Result};

/// A routing socket that hears whenever an interface or an IPv4 address comes, changes or goes.
pub struct LinkEvents(Pin<Box<dyn Stream<Item = ()> + Send>>);

impl LinkEvents {
    /// Hears from now on. Must be called within a tokio runtime.
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

    /// Waits for the next one. What it was is to be looked up, because the kernel drops events that nobody fetches in
    /// time. `false`: there will be no more.
    pub async fn next(&mut self) -> bool {
        self.0.next().await.is_some()
    }
}
