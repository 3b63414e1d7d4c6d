//! Connections that were redirected away, until their clients have closed them.
//!
//! If a socket is closed with bytes in it that nobody has read, the kernel resets the connection, and the
//! REDIRECT may be lost to the client that has not read it yet, or that still sends its request. So what comes
//! is read and thrown away until the client closes, which it does when it has understood.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc::MSG_DONTWAIT;
use socket2::SockRef;

/// Between two looks: by then most clients have closed.
const TICK: Duration = Duration::from_millis(20);

/// A client that takes longer is reset.
const LONGEST: Duration = Duration::from_secs(5);

/// More are closed at once, the oldest first: a server has only so many descriptors.
const MOST: usize = 1024;

static WAITING: LazyLock<Waiting> = LazyLock::new(|| {
    thread::spawn(|| WAITING.run());
    Waiting::default()
});

#[derive(Default)]
struct Waiting {
    streams: Mutex<Vec<(Instant, TcpStream)>>,
    some: Condvar,
}

/// Says goodbye on a connection, and closes it when the client has.
pub(crate) fn linger(stream: io::Result<TcpStream>) {
    // If it is not connected any more there is nobody to wait for.
    let Ok(stream) = stream else { return };
    if stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut streams = WAITING
        .streams
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if streams.len() >= MOST {
        streams.remove(0);
    }
    streams.push((Instant::now(), stream));
    if streams.len() == 1 {
        WAITING.some.notify_one();
    }
}

impl Waiting {
    fn run(&self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            while streams.is_empty() {
                streams = self
                    .some
                    .wait(streams)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            drop(streams);
            thread::sleep(TICK);
            streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|(since, stream)| since.elapsed() < LONGEST && is_open(stream));
        }
    }
}

fn is_open(stream: &TcpStream) -> bool {
    let mut away = [MaybeUninit::uninit(); 16 << 10];
    // Not for ever: others wait too.
    for _ in 0..64 {
        match SockRef::from(stream).recv_with_flags(&mut away, MSG_DONTWAIT) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
    true
}
