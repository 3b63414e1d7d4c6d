//! The forwarding network as the far end.

use std::{io, net::SocketAddr};

use baton_dataplane::AppOptions;
use baton_saps::{Agent, Listening, SocketOptions, VirtualStream};
use tokio::sync::watch;

use crate::{Accepted, Connected, Family, Far, FarListening, FarStream, TakenPort};

impl Far for Agent {
    type Stream = VirtualStream;
    type Listening = Listening;

    async fn connect(&self, to: SocketAddr, options: AppOptions) -> io::Result<Connected> {
        Agent::connect(self, to, of_socket(options)).await
    }

    async fn listen(&self, port: u16, family: Family) -> io::Result<Listening> {
        Agent::listen(self, port, family).await
    }

    fn taken(&self) -> watch::Receiver<Box<[TakenPort]>> {
        Agent::taken(self)
    }
}

fn of_socket(options: AppOptions) -> SocketOptions {
    SocketOptions {
        nodelay: options.nodelay,
        keepalive: options.keepalive,
        keep_idle: options.keep_idle,
        keep_interval: options.keep_interval,
        keep_probes: options.keep_probes,
        user_timeout: options.user_timeout,
        send_buffer: options.send_buffer,
        receive_buffer: options.receive_buffer,
    }
}

impl FarListening for Listening {
    type Stream = VirtualStream;

    async fn accept(&mut self) -> io::Result<Accepted> {
        Listening::accept(self).await
    }
}

impl FarStream for VirtualStream {
    fn reset(self) {
        VirtualStream::reset(self);
    }

    fn broken(&self) -> impl Future<Output = ()> + Send + 'static {
        VirtualStream::broken(self)
    }

    fn setter(&self) -> impl Fn(AppOptions) + Send + Sync + 'static {
        let stream = self.options();
        move |options| stream.set(of_socket(options))
    }
}
