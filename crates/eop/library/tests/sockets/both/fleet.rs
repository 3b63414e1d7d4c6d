//! What the tests share: servers with a thread each and a way to end them, addresses, options.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use eop::{Options, Resend, ServerOptions, Speak};
use socket2::{Domain, Socket, Type};

use super::{Listener, Session};

pub const ANY: &str = "127.0.0.1:0";
pub const ANY6: &str = "[::1]:0";
/// Longer than any pause of a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A set of servers that end once their clients are gone.
#[derive(Default)]
pub struct Fleet {
    over: Arc<AtomicBool>,
    servers: Vec<(SocketAddr, JoinHandle<()>)>,
}

impl Fleet {
    /// Starts a server of EOP clients, at an address of its own.
    pub fn serve(&mut self, each: impl FnMut(Session) + Send + 'static) -> SocketAddr {
        self.serve_with(ServerOptions::default(), each)
    }

    pub fn serve_with(
        &mut self,
        options: ServerOptions,
        each: impl FnMut(Session) + Send + 'static,
    ) -> SocketAddr {
        let (listener, at) = listen(ANY, options);
        self.run(listener, each);
        at
    }

    /// Serves the clients of a listener, one after the other.
    pub fn run(&mut self, listener: Listener, mut each: impl FnMut(Session) + Send + 'static) {
        let at = listener.local_addr().unwrap();
        let over = Arc::clone(&self.over);
        let server = thread::spawn(move || {
            loop {
                let session = listener.accept().unwrap();
                if over.load(Ordering::Acquire) {
                    return;
                }
                each(session);
            }
        });
        self.servers.push((at, server));
    }

    /// Ends the clients, and waits until the servers have ended too. A client that no server has accepted yet is never
    /// served. If a server failed, the test fails.
    pub fn end<C>(self, clients: C) {
        drop(clients);
        self.over.store(true, Ordering::Release);
        for (at, server) in self.servers {
            // This wakes the server, which waits for a client. If it has failed, nobody listens.
            let _ = TcpStream::connect(at);
            server.join().unwrap();
        }
    }
}

pub fn listen(at: &str, options: ServerOptions) -> (Listener, SocketAddr) {
    let listener = Listener::bind(at.parse().unwrap(), options).unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// Returns an address at which nobody listens, and the socket that keeps it from others.
pub fn nobody(any: &str) -> (Socket, SocketAddr) {
    let any: SocketAddr = any.parse().unwrap();
    let socket = Socket::new(Domain::for_address(any), Type::STREAM, None).unwrap();
    socket.bind(&any.into()).unwrap();
    let at = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, at)
}

/// Answers every request with a name and the request.
pub fn echo(name: &'static str) -> impl FnMut(Session) {
    move |mut session| {
        while let Some(request) = session.recv().unwrap() {
            let answer = [name.as_bytes(), b" ", request].concat();
            session.send(&answer).unwrap();
        }
    }
}

/// Redirects the first client once it has sent a request, with the request as the answer if `late`. Answers all other
/// clients, which came back from the target.
pub fn redirects_the_first(late: bool, target: SocketAddr) -> impl FnMut(Session) {
    let mut came = 0;
    move |mut session| {
        came += 1;
        let request = session.recv().unwrap().unwrap().to_vec();
        if came == 1 {
            let answer = late.then_some(&request[..]);
            return session.redirect(answer, target).unwrap();
        }
        assert_eq!(session.fell_back_from(), Some(target));
        session.send(&request).unwrap();
    }
}

/// The session itself sends redirected requests again.
pub fn in_session() -> Options {
    Options {
        resend: Resend::Session { limit: 1 << 20 },
        ..Options::default()
    }
}

pub fn either() -> Options {
    Options {
        speak: Speak::Either,
        patience: PATIENCE,
        ..in_session()
    }
}

pub fn server_either() -> ServerOptions {
    ServerOptions {
        speak: Speak::Either,
        patience: PATIENCE,
        ..ServerOptions::default()
    }
}
