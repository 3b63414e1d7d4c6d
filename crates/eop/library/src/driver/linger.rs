//! Connections whose clients were redirected away. They are kept until the clients have closed them.
//!
//! If a socket is closed while it has bytes that nobody has read, the kernel resets the connection. A client that has
//! not read the REDIRECT yet, or still sends its request, may then lose the REDIRECT. So bytes that arrive are read
//! and thrown away until the client closes the connection, which it does once it has read the REDIRECT.

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::libc::MSG_DONTWAIT;
use socket2::SockRef;

/// The time between two looks at the connections. Most clients have closed theirs by then.
const TICK: Duration = Duration::from_millis(20);

/// How long a client may take to close its connection before it is reset.
const LONGEST: Duration = Duration::from_secs(5);

/// The most connections that are kept, because a server has only so many descriptors. Beyond that the oldest is closed
/// at once.
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

/// Ends this side of a connection with a FIN, and closes the connection once the client has closed it.
pub(crate) fn linger(stream: io::Result<TcpStream>) {
    // If the socket is not connected anymore, there is no client to wait for.
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
    // The number of reads is limited, because other connections wait as well.
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
