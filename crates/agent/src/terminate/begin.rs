//! How a connection begins: with a handshake, or with a session that another data server's agent has begun.

use std::future::pending;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use baton_tls::{Alert, Handshake, HandshakeError, Progress, Session};
use nix::sys::socket::{MsgFlags, recv};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::arrivals::Arrivals;
use super::connection::{Connection, End};
use super::kinds::Kinds;
use super::socket::{end, read, write};
use super::state::State;
use super::{Counters, Service, http2};
use crate::client::Ends;

/// The first bytes of records in the middle of a session: of alerts and of data (RFC 8446, section 5.1).
const INSIDE: [u8; 2] = [21, 23];

/// A client that is gone without a word is noticed after two minutes of silence.
fn keepalive() -> TcpKeepalive {
    let quarter = Duration::from_secs(15);
    TcpKeepalive::new()
        .with_time(4 * quarter)
        .with_interval(quarter)
        .with_retries(4)
}

/// Serves a connection to its end. After an error it ends with a RST, so that its client takes no part of a response
/// for all of it.
pub(super) async fn serve(
    mut client: TcpStream,
    ends: Ends,
    services: watch::Receiver<Arc<Service>>,
    counters: &Arc<Counters>,
) -> io::Result<End> {
    client.set_nodelay(true)?;
    SockRef::from(&client).set_tcp_keepalive(&keepalive())?;
    let service = services.borrow().clone();
    let deadline = Instant::now() + service.head_timeout;
    let state = match arrived(&client, ends, &service.arrivals).await {
        Some(state) => {
            counters.came.fetch_add(1, Relaxed);
            let connection = Connection::new((services, counters), client, ends, state);
            return connection.that_has_come().run().await;
        }
        None => {
            let Some((session, client_in)) = shake_hands(&mut client, &service, deadline).await
            else {
                return Ok(End::Refused);
            };
            counters.shaken.fetch_add(1, Relaxed);
            service.kinds.shaken(session.suite());
            State {
                id: fastrand::u64(..),
                session,
                client_in,
                plain: Vec::new(),
            }
        }
    };
    drop(service);
    if state.session.alpn() == Some(http2::PROTOCOL) {
        return http2::serve(services, counters, client, ends, state, deadline).await;
    }
    let connection = Connection::new((services, counters), client, ends, state);
    connection.that_begins(deadline).run().await
}

/// The state of a connection that has moved here; `None` if it is a new one.
async fn arrived(client: &TcpStream, ends: Ends, arrivals: &Arrivals) -> Option<State> {
    let mut socket = match arrivals.socket(ends) {
        Ok(state) => return goes_on(client, !state.client_in.is_empty()).then_some(state),
        Err(socket) => socket,
    };
    let is_new = async {
        let mut first = [0];
        if matches!(client.peek(&mut first).await, Ok(1..)) && INSIDE.contains(&first[0]) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        state = socket.session() => state,
        () = is_new => None,
    }
}

/// Whether a connection can be the one whose session has come. If that one ended on its way, its client may have begun a
/// new one with the same addresses and ports. `is_amid_record`: the session has a part of the record that is next.
fn goes_on(client: &TcpStream, is_amid_record: bool) -> bool {
    let mut first = [0];
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    match recv(client.as_raw_fd(), &mut first, flags) {
        Ok(1..) => is_amid_record || INSIDE.contains(&first[0]),
        _ => true,
    }
}

/// Makes the handshake. Returns the session, and what came behind the handshake; `None` if there is no session.
pub(super) async fn shake_hands(
    client: &mut TcpStream,
    service: &Service,
    deadline: Instant,
) -> Option<(Session, Vec<u8>)> {
    let mut handshake = Handshake::new(&service.acceptor);
    let (mut input, mut output) = (Vec::new(), Vec::new());
    let shaking = async {
        loop {
            let progress = handshake.advance(&mut input, &mut output);
            if let Err(error) = &progress {
                count_alert(&service.kinds, error, &output);
            }
            while !output.is_empty() {
                let written = write(client, &output).await.ok()?;
                output.drain(..written);
            }
            match progress {
                Ok(Progress::Done(session)) => return Some(session),
                Ok(Progress::More) => match read(client, &mut input).await {
                    Ok(1..) => (),
                    _ => return None,
                },
                Err(error) => {
                    tracing::debug!(%error, "a TLS handshake failed");
                    // The alert that says why was sent.
                    end(client).await;
                    return None;
                }
            }
        }
    };
    let session = timeout_at(deadline, shaking).await.ok()??;
    Some((session, input))
}

/// Counts the alert with which a handshake ended, as far as it was not encrypted.
fn count_alert(kinds: &Kinds, error: &HandshakeError, output: &[u8]) {
    if let Some(alert) = error.alert_received() {
        kinds.alert_received(alert);
    } else if let Some(alert) = Alert::at_end_of(output) {
        kinds.alert_sent(alert);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_new_connection_does_not_go_on_with_the_session_of_an_earlier_one() {
        const HANDSHAKE: u8 = 22;
        for (first, is_amid_record, expected) in [
            (None, false, true),
            (Some(INSIDE[1]), false, true),
            (Some(HANDSHAKE), false, false),
            (Some(HANDSHAKE), true, true),
        ] {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let (socket, _) = listener.accept().await.unwrap();
            if let Some(first) = first {
                client.write_all(&[first]).await.unwrap();
                socket.readable().await.unwrap();
            }
            assert_eq!(goes_on(&socket, is_amid_record), expected, "{first:?}");
        }
    }
}
