//! The state of an agent, which its handles and its listeners share.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use baton_saps_protocol::wire::{Errno, TakenPort, Way};
use baton_saps_protocol::{ConnectionId, Event};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::wanted::WantedPorts;
use crate::shared::Shared;
use crate::{Accepted, VirtualStream};

#[derive(Debug)]
pub(super) struct AgentState {
    pub(super) io_server: SocketAddr,
    pub(super) shared: Arc<Shared>,
    /// How often a channel could not be made.
    pub(super) failed: Arc<AtomicU64>,
    pub(super) wanted: Mutex<WantedPorts>,
    /// Counts events, to wake those that wait for an answer or the channel.
    pub(super) changes: watch::Sender<u64>,
    /// The ports that other programs have at the I/O server.
    pub(super) taken: watch::Sender<Box<[TakenPort]>>,
    /// The tasks of the channel, which end when this is dropped.
    pub(super) tasks: Mutex<JoinSet<()>>,
}

impl AgentState {
    pub(super) fn wanted(&self) -> MutexGuard<'_, WantedPorts> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_up(&self) -> bool {
        self.shared.with(|state| state.channel.is_up())
    }

    pub(super) fn handle(&self, event: Event) {
        match event {
            Event::Up { .. } => {
                let keys = self.wanted().keys();
                keys.into_iter().for_each(|key| self.ask(key));
            }
            Event::Down => {
                self.wanted().forget_answers();
                self.set_taken(Box::default());
            }
            Event::Taken(ports) => self.set_taken(ports),
            Event::Listening { listener, port } => self.wanted().answered(listener, Ok(port)),
            Event::NotListening { listener, errno } => {
                self.wanted().answered(listener, Err(errno));
            }
            Event::Asked { id, way } => self.accept(id, way),
            _ => {}
        }
    }

    fn set_taken(&self, ports: Box<[TakenPort]>) {
        self.taken.send_if_modified(|taken| {
            let is_new = *taken != ports;
            *taken = ports;
            is_new
        });
    }

    /// Asks the I/O server to listen, if the channel is up and it was not asked yet.
    pub(super) fn ask(&self, key: u64) {
        let mut wanted = self.wanted();
        if let Some((port, family)) = wanted.to_ask(key) {
            let listener = (self.shared).with(|state| state.channel.listen(port, family));
            if let Some(listener) = listener {
                wanted.asked(key, listener);
            }
        }
    }

    pub(super) fn unlisten(&self, key: u64) {
        let given_up = self.wanted().remove(key);
        if let Some(listener) = given_up {
            (self.shared).with(|state| state.channel.unlisten(listener));
        }
    }

    pub(super) fn why_over(&self, key: u64) -> Errno {
        match self.wanted().answer(key) {
            Some(Err(errno)) => errno,
            _ => Errno::NETWORK_DOWN,
        }
    }

    /// Gives a client's connection to the program that listens, or refuses it.
    fn accept(&self, id: ConnectionId, way: Way) {
        let refuse = |errno| self.shared.with(|state| state.channel.refuse(id, errno));
        let Way::In {
            listener,
            peer,
            local,
        } = way
        else {
            return refuse(Errno::PROTOCOL);
        };
        let queue = self.wanted().queue(listener);
        let permit = queue.as_ref().and_then(|queue| queue.try_reserve().ok());
        let Some(permit) = permit else {
            return refuse(Errno::REFUSED);
        };
        if let Some(stream) = VirtualStream::accept(&self.shared, id, local, Weak::new()) {
            permit.send(Accepted {
                peer: peer.into(),
                local: local.into(),
                stream,
            });
        }
    }
}
