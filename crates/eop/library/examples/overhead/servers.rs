//! Servers whose answer is ready and as long as the request. Each has a thread, and one client at a time.

#![allow(clippy::unwrap_used, reason = "a measurement that fails is over")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use eop::{Listener, Message, ServerOptions, Session};

const ANY: &str = "127.0.0.1:0";

pub fn plain(size: usize, nodelay: bool) -> SocketAddr {
    let listener = TcpListener::bind(ANY).unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut request, answer) = (vec![0; size], vec![b'y'; size]);
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(nodelay).unwrap();
            while stream.read_exact(&mut request).is_ok() {
                stream.write_all(&answer).unwrap();
            }
        }
    });
    at
}

pub fn eop(size: usize, nodelay: bool, copied: bool) -> SocketAddr {
    let mut answer = Message::from(&vec![b'y'; size][..]);
    serve(nodelay, move |mut session| {
        while session.recv().unwrap_or_default().is_some() {
            if copied {
                session.send(&answer).unwrap();
            } else {
                session.send_message(&mut answer).unwrap();
            }
        }
    })
}

/// Starts a server that answers once, and redirects the client to the next server with that answer.
pub fn redirecting(size: usize, next: SocketAddr) -> SocketAddr {
    let answer = vec![b'y'; size];
    serve(true, move |mut session| {
        if session.recv().unwrap_or_default().is_some() {
            session.redirect(Some(&answer), next).unwrap();
        }
    })
}

fn serve(nodelay: bool, mut each: impl FnMut(Session) + Send + 'static) -> SocketAddr {
    let options = ServerOptions {
        nodelay,
        ..ServerOptions::default()
    };
    let listener = Listener::bind(ANY.parse().unwrap(), options).unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        loop {
            each(listener.accept().unwrap());
        }
    });
    at
}
