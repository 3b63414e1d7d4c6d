//! The services of one kind for which this process listens, each at an address of its own and with settings that may change.
//! This process listens, and not the daemon, because it lives on when daemons are replaced.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use baton_net::Error;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::succession::Predecessor;
use crate::listener::Listener;

/// The services that take connections.
pub(super) struct Listeners<S> {
    /// What clients speak, for messages.
    protocol: &'static str,
    /// What to do if another program listens at a service's address.
    remedy: &'static str,
    running: HashMap<SocketAddrV4, Running<S>>,
}

/// A service that takes connections as long as this exists.
struct Running<S> {
    settings: watch::Sender<S>,
    /// The socket that listens, for a successor.
    socket: OwnedFd,
    /// Nobody here accepts connections any more when this has ended.
    _stop: oneshot::Sender<()>,
}

/// A service that is to take connections.
pub(super) struct Wanted<S> {
    /// The name in the configuration, for messages.
    pub name: String,
    /// The cluster address and port.
    pub address: SocketAddrV4,
    pub settings: S,
}

/// What is wanted, with the listeners for it that did not exist.
pub(super) struct Prepared<S> {
    wanted: HashMap<SocketAddrV4, S>,
    new: Vec<(SocketAddrV4, Listener, OwnedFd)>,
}

impl<S: Clone + Send + Sync + 'static> Listeners<S> {
    pub fn new(protocol: &'static str, remedy: &'static str) -> Self {
        Self {
            protocol,
            remedy,
            running: HashMap::new(),
        }
    }

    /// Makes ready to serve exactly these. A socket that listens already is taken from the process before. Nothing changes
    /// until [`Listeners::follow`].
    ///
    /// # Errors
    /// Why that is impossible, for instance because another program listens there, and what to do.
    pub fn prepare(
        &self,
        services: Vec<Wanted<S>>,
        predecessor: &mut Option<Predecessor>,
    ) -> Result<Prepared<S>, String> {
        let (mut wanted, mut new) = (HashMap::new(), Vec::new());
        for service in services {
            let Wanted { name, address, .. } = service;
            wanted.insert(address, service.settings);
            if self.running.contains_key(&address) {
                continue;
            }
            let listener = match predecessor.as_mut().and_then(|one| one.listener(address)) {
                Some(given) => Listener::adopt(given),
                None => Listener::at(address),
            };
            let listener = listener
                .map_err(Error::system(format!(
                    "listen at {address} for {}",
                    self.protocol
                )))
                .map_err(|error| format!("service {name}: {error}; {}", self.remedy))?;
            let socket = listener.as_fd().try_clone_to_owned();
            let socket = socket.map_err(Error::system("copy the descriptor of a listener"));
            let socket = socket.map_err(|error| error.to_string())?;
            new.push((address, listener, socket));
        }
        Ok(Prepared { wanted, new })
    }

    /// Serves what was prepared, each connection with `serve`, which sees the service's settings at each moment. Tasks that
    /// serve connections go to `serving`. Connections of other services go on to their ends.
    pub fn follow<F>(
        &mut self,
        Prepared { mut wanted, new }: Prepared<S>,
        serving: &mut JoinSet<()>,
        serve: impl Fn(TcpStream, watch::Receiver<S>) -> F + Clone + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.running.retain(|at, _| wanted.contains_key(at));
        for (at, running) in &self.running {
            if let Some(settings) = wanted.remove(at) {
                running.settings.send_replace(settings);
            }
        }
        for (at, listener, socket) in new {
            let Some(settings) = wanted.remove(&at) else {
                continue;
            };
            let (sender, settings) = watch::channel(settings);
            let (_stop, stopped) = oneshot::channel();
            let serve = serve.clone();
            let serve = move |client| serve(client, settings.clone());
            let stop = async {
                // The sender says nothing, it only ends.
                let _ = stopped.await;
            };
            serving.spawn(listener.accept_until(stop, serve));
            let running = Running {
                settings: sender,
                socket,
                _stop,
            };
            self.running.insert(at, running);
        }
    }

    /// The settings of the service at this address now.
    pub fn settings(&self, at: SocketAddrV4) -> Option<S> {
        let running = self.running.get(&at)?;
        Some(running.settings.borrow().clone())
    }

    /// Accepts no more connections.
    pub fn stop(&mut self) {
        self.running.clear();
    }

    /// The sockets that listen.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketAddrV4, &OwnedFd)> {
        self.running.iter().map(|(at, one)| (*at, &one.socket))
    }
}
