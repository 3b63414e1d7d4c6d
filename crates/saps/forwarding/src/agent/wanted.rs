//! The ports that programs of this node listen on, and the answers of the I/O server.

use std::collections::BTreeMap;

use baton_saps_protocol::wire::{Errno, ListenerTag};
use tokio::sync::mpsc;

use crate::{Accepted, Family};

#[derive(Debug, Default)]
pub(super) struct WantedPorts {
    next: u64,
    wanted: BTreeMap<u64, Wanted>,
}

#[derive(Debug)]
struct Wanted {
    /// The port, or 0 until the I/O server has chosen one.
    port: u16,
    family: Family,
    /// Where clients' connections go; `None` once the I/O server no longer listens for the program.
    queue: Option<mpsc::Sender<Accepted>>,
    /// The listener on the channel that is up, once the I/O server was asked for it.
    listener: Option<ListenerTag>,
    /// The port that the I/O server listens on or its refusal, once it has answered.
    answer: Option<Result<u16, Errno>>,
    was_listening: bool,
}

impl WantedPorts {
    /// Adds a port and returns its key.
    ///
    /// # Errors
    /// EADDRINUSE if a program of this node has the port.
    pub(super) fn add(
        &mut self,
        port: u16,
        family: Family,
        queue: mpsc::Sender<Accepted>,
    ) -> Result<u64, Errno> {
        let meets = |other: &Wanted| {
            let apart = matches!(
                (family, other.family),
                (Family::V4, Family::V6) | (Family::V6, Family::V4)
            );
            port != 0 && other.port == port && !apart
        };
        if self.wanted.values().any(meets) {
            return Err(Errno::ADDRESS_IN_USE);
        }
        let key = self.next;
        self.next += 1;
        let wanted = Wanted {
            port,
            family,
            queue: Some(queue),
            listener: None,
            answer: None,
            was_listening: false,
        };
        self.wanted.insert(key, wanted);
        Ok(key)
    }

    /// Removes a port. Returns the listener that the I/O server must be told to give up.
    pub(super) fn remove(&mut self, key: u64) -> Option<ListenerTag> {
        self.wanted.remove(&key)?.listener
    }

    pub(super) fn keys(&self) -> Vec<u64> {
        self.wanted.keys().copied().collect()
    }

    /// Returns the port to ask the I/O server for, if it was not asked yet.
    pub(super) fn to_ask(&self, key: u64) -> Option<(u16, Family)> {
        let wanted = self.wanted.get(&key)?;
        (wanted.listener.is_none()).then_some((wanted.port, wanted.family))
    }

    pub(super) fn asked(&mut self, key: u64, listener: ListenerTag) {
        if let Some(wanted) = self.wanted.get_mut(&key) {
            wanted.listener = Some(listener);
        }
    }

    /// Takes the I/O server's answer.
    pub(super) fn answered(&mut self, listener: ListenerTag, answer: Result<u16, Errno>) {
        if let Some(wanted) = self.find(listener) {
            match answer {
                Ok(port) => (wanted.port, wanted.was_listening) = (port, true),
                Err(_) if wanted.was_listening => wanted.queue = None,
                Err(_) => {}
            }
            wanted.answer = Some(answer);
        }
    }

    /// Forgets what the I/O server answered on a channel that is lost.
    pub(super) fn forget_answers(&mut self) {
        for wanted in self.wanted.values_mut() {
            (wanted.listener, wanted.answer) = (None, None);
        }
    }

    pub(super) fn queue(&mut self, listener: ListenerTag) -> Option<mpsc::Sender<Accepted>> {
        self.find(listener)?.queue.clone()
    }

    /// Returns the port that the I/O server listens on or its refusal, or `None` if it has not answered yet.
    pub(super) fn answer(&self, key: u64) -> Option<Result<u16, Errno>> {
        let wanted = self.wanted.get(&key);
        wanted.map_or(Some(Err(Errno::ABORTED)), |wanted| wanted.answer)
    }

    pub(super) fn ports(&self) -> Vec<(u16, Family, bool)> {
        (self.wanted.values())
            .map(|wanted| {
                let is_listening = matches!(wanted.answer, Some(Ok(_)));
                (wanted.port, wanted.family, is_listening)
            })
            .collect()
    }

    fn find(&mut self, listener: ListenerTag) -> Option<&mut Wanted> {
        let mut all = self.wanted.values_mut();
        all.find(|wanted| wanted.listener == Some(listener))
    }
}
