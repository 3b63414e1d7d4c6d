//! The services whose clients are sent to HTTPS. This process listens for them because it lives on when daemons are
//! replaced.

use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::settings::RedirectSettings;
use super::succession::Predecessor;
use crate::redirect::{Counters, Redirect, Redirector};

/// The addresses at which requests are redirected.
#[derive(Default)]
pub(super) struct Redirects {
    running: HashMap<SocketAddrV4, Running>,
    pub counters: Arc<Counters>,
}

/// A service that takes connections as long as this exists.
struct Running {
    redirect: watch::Sender<Redirect>,
    /// The socket that listens, for a successor.
    listener: OwnedFd,
    /// Nobody here accepts connections any more when this has ended.
    _stop: oneshot::Sender<()>,
}

/// What is wanted, with the listeners for it that did not exist.
pub(super) struct Prepared {
    wanted: HashMap<SocketAddrV4, Redirect>,
    new: Vec<(SocketAddrV4, watch::Sender<Redirect>, Redirector, OwnedFd)>,
}

impl Redirects {
    /// Makes ready to redirect at exactly these addresses. Nothing changes until [`Redirects::follow`].
    ///
    /// # Errors
    /// Why that is impossible, and what to do.
    pub fn prepare(
        &self,
        settings: &[RedirectSettings],
        predecessor: &mut Option<Predecessor>,
    ) -> Result<Prepared, String> {
        let mut prepared = Prepared {
            wanted: HashMap::new(),
            new: Vec::new(),
        };
        for RedirectSettings {
            name,
            address,
            https_port,
            head_timeout,
        } in settings
        {
            let redirect = Redirect {
                https_port: *https_port,
                head_timeout: *head_timeout,
            };
            prepared.wanted.insert(*address, redirect);
            if self.running.contains_key(address) {
                continue;
            }
            let sender = watch::Sender::new(redirect);
            let given = predecessor.as_mut().and_then(|one| one.listener(*address));
            let counters = Arc::clone(&self.counters);
            let redirector = Redirector::new(*address, given, sender.subscribe(), counters);
            let redirector = redirector.map_err(|error| {
                format!(
                    "service {name}: {error}; with redirect = \"https\" the agent itself listens there, so end what \
                     listens there now, or have it listen at another port"
                )
            })?;
            let listener = redirector.listener().map_err(|error| error.to_string())?;
            prepared.new.push((*address, sender, redirector, listener));
        }
        Ok(prepared)
    }

    /// Redirects as it was prepared. Tasks that serve connections go to `serving`.
    pub fn follow(&mut self, Prepared { wanted, new }: Prepared, serving: &mut JoinSet<()>) {
        self.running.retain(|at, _| wanted.contains_key(at));
        for (at, running) in &self.running {
            if let Some(redirect) = wanted.get(at) {
                running.redirect.send_replace(*redirect);
            }
        }
        for (at, redirect, redirector, listener) in new {
            let (_stop, stopped) = oneshot::channel();
            serving.spawn(redirector.run(async {
                // The sender says nothing, it only ends.
                let _ = stopped.await;
            }));
            let running = Running {
                redirect,
                listener,
                _stop,
            };
            self.running.insert(at, running);
        }
    }

    /// Accepts no more connections.
    pub fn stop(&mut self) {
        self.running.clear();
    }

    /// The sockets that listen.
    pub fn listeners(&self) -> impl Iterator<Item = (SocketAddrV4, &OwnedFd)> {
        self.running.iter().map(|(at, one)| (*at, &one.listener))
    }
}
