//! The forwarding network as the far end.

use std::{collections::BTreeMap, io, net::SocketAddr};

use baton_dataplane::{AppOptions, AppTaken};
use baton_saps::{Agent, Listening, SocketOptions, TakenPort, VirtualStream};
use tokio::sync::watch;

use crate::{Accepted, Connected, Family, Far, FarListening, FarStream};

impl Far for Agent {
    type Stream = VirtualStream;
    type Listening = Listening;

    async fn connect(
        &self,
        to: SocketAddr,
        options: AppOptions,
    ) -> io::Result<Connected<VirtualStream>> {
        let connected = Agent::connect(self, to, of_socket(options)).await?;
        Ok(Connected {
            local: connected.local,
            stream: connected.stream,
        })
    }

    async fn listen(&self, port: u16, family: Family) -> io::Result<Listening> {
        let family = match family {
            Family::V4 => baton_saps::Family::V4,
            Family::V6 => baton_saps::Family::V6,
            Family::Both => baton_saps::Family::Both,
        };
        Agent::listen(self, port, family).await
    }

    fn taken(&self) -> watch::Receiver<Vec<AppTaken>> {
        let mut known = Agent::taken(self);
        let ports = of_any(&known.borrow_and_update());
        let (sender, receiver) = watch::channel(ports);
        // The task ends with the agent, or when nobody receives the list anymore.
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    changed = known.changed() => if changed.is_err() { return },
                    () = sender.closed() => return,
                }
                let ports = of_any(&known.borrow_and_update());
                sender.send_replace(ports);
            }
        });
        receiver
    }
}

/// The ports that are taken at one or more of the I/O servers.
fn of_any(servers: &[Box<[TakenPort]>]) -> Vec<AppTaken> {
    let mut ports: BTreeMap<u16, AppTaken> = BTreeMap::new();
    for taken in servers.iter().flatten() {
        let port = taken.port;
        let (v4, v6) = (false, false);
        let all = ports.entry(port).or_insert(AppTaken { port, v4, v6 });
        all.v4 |= taken.families != baton_saps::Family::V6;
        all.v6 |= taken.families != baton_saps::Family::V4;
    }
    ports.into_values().collect()
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

    async fn accept(&mut self) -> io::Result<Accepted<VirtualStream>> {
        let accepted = Listening::accept(self).await?;
        Ok(Accepted {
            peer: accepted.peer,
            local: accepted.local,
            stream: accepted.stream,
        })
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
