//! The kernel makes the records that a client is sent (kTLS, the module `tls`). What is written to the client's socket is
//! then data as it is, and a server's response can go to it within the kernel.
//!
//! The kernel may hold back records that did not fit into TCP's buffer, and says nothing about them. Before a connection
//! ends or moves, TCP must have been given all of them. [`KernelTls::finish`] finds out by adding up: so many bytes of
//! content, in so many records, are so many bytes for TCP.

mod crypto_info;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use baton_tls::{Session, Suite};
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::TcpUlp;
use socket2::{MsgHdr, SockRef};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::socket::{STALL, has_failed};
use crate::client::has_ended;
use crate::position::acknowledged;

/// The time between two looks whether TCP has been given all.
const LOOK: Duration = Duration::from_millis(2);
/// The number of the kernel's next record is looked at after so many bytes. Even if each record had only one, they would be
/// few enough.
const WATCH: u64 = 1 << 20;
/// The type of alerts among records (RFC 8446, section 5.1).
const ALERT: u8 = 21;

/// Set when this machine's kernel has turned out to have no kTLS.
static IS_MISSING: AtomicBool = AtomicBool::new(false);

/// A socket for which the kernel makes records.
pub(super) struct KernelTls {
    suite: Suite,
    /// The number of the kernel's first record.
    first: u64,
    /// How many bytes TCP had been given before it.
    before: u64,
    /// How many bytes of content have been written since.
    content: u64,
    /// How many those were at the last look at the kernel's records.
    watched: u64,
}

impl KernelTls {
    /// Whether this machine's kernel has turned out to have no kTLS.
    pub fn is_missing() -> bool {
        IS_MISSING.load(Relaxed)
    }

    /// Has the kernel make all records from the next one on. The earlier ones must have been written to the socket. `None`:
    /// the kernel does not, so the session goes on making them.
    pub fn begin(client: &TcpStream, session: &mut Session) -> Option<Self> {
        if Self::is_missing() {
            return None;
        }
        if let Err(error) = setsockopt(client, TcpUlp::default(), b"tls") {
            // The others are about this connection, for instance that its client has ended its side.
            if matches!(error, Errno::ENOENT | Errno::ENOPROTOOPT | Errno::EPERM)
                && !IS_MISSING.swap(true, Relaxed)
            {
                tracing::info!(
                    %error,
                    "this kernel cannot encrypt what TLS clients are sent, so the TLS agent does: if it is to, load the \
                     kernel's module `tls` before baton starts"
                );
            }
            return None;
        }
        let before = given(client).ok()?;
        let key = session.sending_key();
        if let Err(error) = crypto_info::set(client, &key) {
            // Without a key, a socket sends what it is given, as before.
            tracing::debug!(%error, suite = key.suite.name(), "the kernel does not take a TLS key");
            return None;
        }
        session.offload_sending();
        Some(Self {
            suite: key.suite,
            first: key.sequence,
            before,
            content: 0,
            watched: 0,
        })
    }

    /// Notes that so many bytes of data have been written to the socket. Returns whether the kernel's records should be
    /// looked at again.
    pub fn wrote(&mut self, bytes: usize) -> bool {
        self.content += bytes as u64;
        let is_due = self.content - self.watched >= WATCH;
        if is_due {
            self.watched = self.content;
        }
        is_due
    }

    /// The number of the next record.
    pub fn next_record(&self, client: &TcpStream) -> io::Result<u64> {
        crypto_info::next_record(client, self.suite.cipher_kind())
    }

    /// Sends an alert, behind all data.
    pub async fn send_alert(&mut self, client: &TcpStream, alert: [u8; 2]) -> io::Result<()> {
        let control = record_type(ALERT);
        let send = || {
            let content = [IoSlice::new(&alert)];
            let message = (MsgHdr::new().with_buffers(&content)).with_control(&control);
            SockRef::from(client).sendmsg(&message, libc::MSG_NOSIGNAL)
        };
        let sent = timeout(STALL, client.async_io(Interest::WRITABLE, send)).await??;
        self.content += sent as u64;
        Ok(())
    }

    /// Waits until TCP has been given all records. Returns the number of the next one.
    ///
    /// # Errors
    /// The connection has ended, or its client takes nothing.
    pub async fn finish(&self, client: &TcpStream) -> io::Result<u64> {
        let finished = async {
            loop {
                let next = self.next_record(client)?;
                if given(client)? == self.before + self.expected(next) {
                    return Ok(next);
                }
                if has_ended(client) || has_failed(client) {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                sleep(LOOK).await;
            }
        };
        timeout(STALL, finished).await?
    }

    /// How many bytes TCP is given from the kernel's first record until the record of number `next`.
    fn expected(&self, next: u64) -> u64 {
        self.content + (next - self.first) * self.suite.record_overhead() as u64
    }
}

/// How many bytes TCP has been given to send since the socket was made.
fn given(socket: &impl AsFd) -> io::Result<u64> {
    loop {
        let before = acknowledged(socket)?;
        let given = before + waiting(socket)?;
        // Otherwise an acknowledgement came between the two.
        if acknowledged(socket)? == before {
            return Ok(given);
        }
    }
}

/// How many bytes TCP holds that the other side has not acknowledged.
fn waiting(socket: &impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, and this request writes one int to the address.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    Errno::result(result)?;
    Ok(u64::try_from(bytes).unwrap_or_default())
}

/// A control message that says of which type the record is that a message becomes: `struct cmsghdr` with one byte.
fn record_type(kind: u8) -> Vec<u8> {
    // The length of the header, and of the byte.
    let length = size_of::<usize>() + 2 * size_of::<libc::c_int>() + 1;
    let mut control = length.to_ne_bytes().to_vec();
    control.extend(libc::SOL_TLS.to_ne_bytes());
    control.extend(libc::TLS_SET_RECORD_TYPE.to_ne_bytes());
    control.push(kind);
    control.resize(length.next_multiple_of(size_of::<usize>()), 0);
    control
}

#[cfg(test)]
mod tests;
