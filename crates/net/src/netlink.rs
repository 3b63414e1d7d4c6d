//! The kernel's routing socket: links, addresses, routes, rules and neighbors.
//!
//! This is the only module that knows `rtnetlink`; types of that crate do not leave it.

pub mod adapter;
pub mod address;
pub mod events;
pub mod link;
pub mod neighbor;
pub mod route;

use std::{io, sync::Arc};

use futures_util::{Stream, TryStreamExt};
use rtnetlink::Handle;
use tokio::sync::Mutex;

use crate::{Error, Result};

/// A connection to the routing socket of the namespace it was opened in. Clones share it.
#[derive(Clone, Debug)]
pub struct Netlink {
    handle: Handle,
    /// Held while a list of neighbors comes in. Several lists at the same time would overrun the socket's buffer, and
    /// the reader of a lost message would wait forever.
    listing: Arc<Mutex<()>>,
}

impl Netlink {
    /// Opens the routing socket. Must be called within a tokio runtime, which then serves it for
    /// as long as a clone exists.
    ///
    /// # Errors
    /// [`Error::System`] if the kernel gives no netlink socket.
    pub fn open() -> Result<Self> {
        let (connection, handle, _) =
            rtnetlink::new_connection().map_err(Error::system("open the routing socket"))?;
        tokio::spawn(connection);
        Ok(Self {
            handle,
            listing: Arc::default(),
        })
    }
}

/// Collects all answers of a dump.
async fn all<T>(
    doing: &str,
    stream: impl Stream<Item = std::result::Result<T, rtnetlink::Error>>,
) -> Result<Vec<T>> {
    stream.try_collect().await.map_err(failed(doing))
}

/// Makes an error of this crate, for use in `map_err`. `doing` is what was tried.
fn failed(doing: impl Into<String>) -> impl FnOnce(rtnetlink::Error) -> Error {
    let doing = doing.into();
    move |error| {
        let cause = match error {
            rtnetlink::Error::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other.to_string()),
        };
        Error::System { doing, cause }
    }
}

/// Turns an error whose number is in `already`, which means that nothing had to be done, into `false`.
fn unless(done: Result<()>, already: &[i32]) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.errno().is_some_and(|errno| already.contains(&errno)) => Ok(false),
        Err(error) => Err(error),
    }
}
