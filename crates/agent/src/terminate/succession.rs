//! How a process that speaks TLS takes over from the one before: it is given the listening sockets, so that no connection
//! is refused or lost in between.
//!
//! ```text
//!  successor --connects--> predecessor
//!            <--the addresses of its services, and their listening sockets (SCM_RIGHTS, unix(7))--
//!            both accept connections
//!            --one byte, once it serves--> the predecessor accepts no more
//! ```
//!
//! A successor that ends before it serves leaves everything as it was.

use std::collections::HashMap;
use std::future::pending;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddrV4, TcpListener};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// A predecessor answers within this time, or hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// At most this many services are handed over; a configuration has 64.
const SERVICES: usize = 128;
/// Room for the longest list of addresses.
const LIST: usize = SERVICES * 24;

/// The process that has served until now, which still does.
pub(super) struct Predecessor {
    stream: UnixStream,
    listeners: HashMap<SocketAddrV4, TcpListener>,
}

impl Predecessor {
    /// Finds the process at this socket, and gets its listening sockets.
    pub async fn find(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).await.ok()?;
        match timeout(PATIENCE, receive(&stream)).await {
            Ok(Ok(listeners)) => Some(Self { stream, listeners }),
            other => {
                tracing::warn!(
                    ?other,
                    "the TLS agent of an earlier daemon hands nothing over"
                );
                None
            }
        }
    }

    /// Takes the socket that listens at this address.
    pub fn listener(&mut self, at: SocketAddrV4) -> Option<TcpListener> {
        self.listeners.remove(&at)
    }

    /// Has the process accept no more connections.
    pub async fn retire(mut self) {
        if let Err(error) = self.stream.write_all(b"!").await {
            tracing::warn!(%error, "the TLS agent before has ended while it handed over");
        }
    }
}

async fn receive(stream: &UnixStream) -> io::Result<HashMap<SocketAddrV4, TcpListener>> {
    let (list, sockets) = stream
        .async_io(Interest::READABLE, || receive_now(stream))
        .await?;
    let addresses: Vec<SocketAddrV4> = serde_json::from_slice(&list)?;
    if addresses.len() != sockets.len() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let listeners = sockets.into_iter().map(TcpListener::from);
    Ok(addresses.into_iter().zip(listeners).collect())
}

fn receive_now(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut list = vec![0; LIST];
    let mut space = nix::cmsg_space!([RawFd; SERVICES]);
    let mut buffers = [IoSliceMut::new(&mut list)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<UnixAddr>(stream.as_raw_fd(), &mut buffers, Some(&mut space), flags)?;
    let mut sockets = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just made these descriptors for this process, and nobody else knows them.
            sockets.extend(
                numbers
                    .into_iter()
                    .map(|number| unsafe { OwnedFd::from_raw_fd(number) }),
            );
        }
    }
    let bytes = message.bytes;
    list.truncate(bytes);
    Ok((list, sockets))
}

/// Waits for a successor; for ever if nobody listens for one.
pub(super) async fn accept_successor(successors: Option<&UnixListener>) -> UnixStream {
    let Some(successors) = successors else {
        return pending().await;
    };
    loop {
        match successors.accept().await {
            Ok((successor, _)) => return successor,
            // No descriptors are left. The next try may find some.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Waits until a successor serves; for ever if there is none. False: it has ended before.
pub(super) async fn successor_serves(successor: &mut Option<UnixStream>) -> bool {
    match successor {
        Some(successor) => matches!(successor.read(&mut [0; 1]).await, Ok(1)),
        None => pending().await,
    }
}

/// Gives a successor the sockets that listen.
pub(super) fn hand_over<L: AsFd>(
    successor: &UnixStream,
    listeners: &[(SocketAddrV4, L)],
) -> io::Result<()> {
    let addresses: Vec<SocketAddrV4> = listeners.iter().map(|(at, _)| *at).collect();
    let list = serde_json::to_vec(&addresses)?;
    let numbers: Vec<RawFd> = listeners
        .iter()
        .map(|(_, listener)| listener.as_fd().as_raw_fd())
        .collect();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    let descriptor = successor.as_raw_fd();
    sendmsg::<UnixAddr>(descriptor, &[IoSlice::new(&list)], &rights, flags, None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_that_wait_are_the_successors() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        assert!(Predecessor::find(&socket).await.is_none());
        let successors = UnixListener::bind(&socket).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let std::net::SocketAddr::V4(at) = listener.local_addr().unwrap() else {
            panic!("IPv4")
        };
        let waiting = std::net::TcpStream::connect(at).unwrap();

        let predecessor = tokio::spawn(async move {
            loop {
                let successor = accept_successor(Some(&successors)).await;
                hand_over(&successor, &[(at, &listener)]).unwrap();
                if successor_serves(&mut Some(successor)).await {
                    return;
                }
            }
        });
        // This one gives up before it serves.
        drop(Predecessor::find(&socket).await.unwrap());
        let mut found = Predecessor::find(&socket).await.unwrap();
        assert!(!predecessor.is_finished());
        let listener = found.listener(at).unwrap();
        assert!(found.listener(at).is_none());
        found.retire().await;
        predecessor.await.unwrap();
        let (_, client) = listener.accept().unwrap();
        assert_eq!(client, waiting.local_addr().unwrap());
    }
}
