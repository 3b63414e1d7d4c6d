//! Connections to the local server whose clients have gone to other data servers. A client that comes back soon goes on
//! with its own, so that moves to and fro cost the server no connections.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::locked::locked;
use tokio::time::Instant;
use tokio_util::either::Either;

use super::local_server::{LocalServer, LocalStream};

/// A connection waits this long for its client.
const WAITS: Duration = Duration::from_secs(10);
/// This many connections wait at most. Servers close idle ones when they need room.
const MOST: usize = 512;

/// The connections that wait, by the ids of their clients' connections. A clone has the same.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<HashMap<u64, Waiting>>>);

struct Waiting {
    stream: LocalStream,
    /// The server as the settings named it.
    server: Arc<LocalServer>,
    until: Instant,
}

impl Kept {
    /// Keeps a connection on which nothing is under way.
    pub fn keep(&self, client: u64, server: Arc<LocalServer>, stream: LocalStream) {
        let until = Instant::now() + WAITS;
        let mut kept = locked(&self.0);
        if kept.len() < MOST {
            kept.insert(
                client,
                Waiting {
                    stream,
                    server,
                    until,
                },
            );
        }
    }

    /// The connection of this client, if it was kept, leads to this server, and the server has not ended it.
    pub fn take(&self, client: u64, server: &LocalServer) -> Option<LocalStream> {
        let waiting = locked(&self.0).remove(&client)?;
        (waiting.server.is_same(server) && is_silent(&waiting.stream)).then_some(waiting.stream)
    }

    /// Ends connections whose clients have not come back in time.
    pub fn forget(&self) {
        let now = Instant::now();
        locked(&self.0).retain(|_, waiting| waiting.until > now);
    }
}

/// Whether the server has said nothing, and has not ended.
fn is_silent(stream: &LocalStream) -> bool {
    let mut byte = [0];
    let read = match stream {
        Either::Left(stream) => stream.try_read(&mut byte),
        Either::Right(stream) => stream.try_read(&mut byte),
    };
    matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::UnixStream;
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::super::settings::{ClientAddress, ServerAddress};
    use super::*;

    fn server(client_address: ClientAddress) -> Arc<LocalServer> {
        let path = PathBuf::from("/run/web.sock");
        let address = ServerAddress::Socket {
            path,
            client_address,
        };
        Arc::new(LocalServer::new("web", address, 0, Arc::default()))
    }

    /// Keeps a connection of this client. Returns the server's side of it.
    fn keep(kept: &Kept, client: u64) -> UnixStream {
        let (near, far) = UnixStream::pair().unwrap();
        let server = server(ClientAddress::ProxyV2);
        kept.keep(client, server, Either::Right(near));
        far
    }

    fn is_there(kept: &Kept, client: u64) -> bool {
        kept.take(client, &server(ClientAddress::ProxyV2)).is_some()
    }

    #[tokio::test]
    async fn a_client_gets_its_own_connection_once() {
        let kept = Kept::default();
        let _servers = [keep(&kept, 1), keep(&kept, 2)];
        assert!(!is_there(&kept, 3));
        assert!(is_there(&kept, 1) && !is_there(&kept, 1));
        assert!(is_there(&kept, 2));
    }

    #[tokio::test]
    async fn a_server_that_has_ended_or_speaks_unasked_is_left() {
        let kept = Kept::default();
        drop(keep(&kept, 1));
        let mut speaks = keep(&kept, 2);
        speaks.write_all(b"HTTP/1.1 408 \r\n").await.unwrap();
        // The runtime has seen it.
        for _ in 0..100 {
            yield_now().await;
        }
        assert!(!is_there(&kept, 1) && !is_there(&kept, 2));
    }

    #[tokio::test]
    async fn a_server_that_is_told_the_address_otherwise_is_another() {
        let kept = Kept::default();
        let _server = keep(&kept, 1);
        let other = server(ClientAddress::ForwardedFor);
        assert!(kept.take(1, &other).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_for_ever_and_not_too_many_wait() {
        let kept = Kept::default();
        let _first = keep(&kept, 1);
        advance(WAITS / 2).await;
        let _servers: Vec<_> = (2..MOST as u64 + 10)
            .map(|client| keep(&kept, client))
            .collect();
        assert_eq!(locked(&kept.0).len(), MOST);
        advance(WAITS / 2 + Duration::from_millis(1)).await;
        kept.forget();
        assert_eq!(locked(&kept.0).len(), MOST - 1);
        assert!(!is_there(&kept, 1) && is_there(&kept, 2));
    }
}
