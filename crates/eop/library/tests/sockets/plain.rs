//! Servers that know nothing of EOP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

/// Starts a server that sends `first` on each of this many connections, and then answers what it gets.
pub fn plain_server(first: &'static [u8], connections: usize) -> (SocketAddr, JoinHandle<()>) {
    // Clients remember plain servers by their addresses. No other server of these tests gets the same one.
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let at = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().unwrap();
            let mut bytes = [0; 100];
            let _ = stream.write_all(first);
            if let Ok(count @ 1..) = stream.read(&mut bytes) {
                let _ = stream.write_all(&bytes[..count]);
            }
        }
    });
    (at, server)
}
