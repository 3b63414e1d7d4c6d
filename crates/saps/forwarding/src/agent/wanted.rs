//! The ports that programs of this node listen on, and the answers of the I/O servers.

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
    /// The port, or 0 until the first I/O server has chosen one.
    port: u16,
    family: Family,
    /// Where clients' connections go; `None` once no I/O server listens for the program anymore.
    queue: Option<mpsc::Sender<Accepted>>,
    /// The answers of the I/O servers that were asked and whose channels are up.
    answers: BTreeMap<usize, (ListenerTag, Answer)>,
    was_listening: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Asked,
    Listening,
    Refused(Errno),
}

/// The result of asking for a port, so far.
pub(super) enum Outcome {
    Listening(u16),
    Refused(Errno),
    Waiting,
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
            answers: BTreeMap::new(),
            was_listening: false,
        };
        self.wanted.insert(key, wanted);
        Ok(key)
    }

    /// Removes a port. Returns the I/O servers that must be told, with their listeners.
    pub(super) fn remove(&mut self, key: u64) -> Vec<(usize, ListenerTag)> {
        let wanted = self.wanted.remove(&key);
        let answers = wanted.into_iter().flat_map(|wanted| wanted.answers);
        answers
            .map(|(server, (listener, _))| (server, listener))
            .collect()
    }

    pub(super) fn keys(&self) -> Vec<u64> {
        self.wanted.keys().copied().collect()
    }

    /// Returns the port to ask an I/O server for, if it was not asked yet. Only one I/O server is asked to choose a
    /// port.
    pub(super) fn to_ask(&self, key: u64, server: usize) -> Option<(u16, Family)> {
        let wanted = self.wanted.get(&key)?;
        let is_asked = match wanted.port {
            0 => !wanted.answers.is_empty(),
            _ => wanted.answers.contains_key(&server),
        };
        (!is_asked).then_some((wanted.port, wanted.family))
    }

    pub(super) fn asked(&mut self, key: u64, server: usize, listener: ListenerTag) {
        if let Some(wanted) = self.wanted.get_mut(&key) {
            wanted.answers.insert(server, (listener, Answer::Asked));
        }
    }

    /// Takes an I/O server's answer. Returns the key of the listener's port.
    pub(super) fn answered(
        &mut self,
        server: usize,
        listener: ListenerTag,
        answer: Result<u16, Errno>,
    ) -> Option<u64> {
        let (key, wanted) = self.find(server, listener)?;
        let answer = match answer {
            Ok(port) => {
                (wanted.port, wanted.was_listening) = (port, true);
                Answer::Listening
            }
            Err(errno) => Answer::Refused(errno),
        };
        wanted.answers.insert(server, (listener, answer));
        if wanted.was_listening && wanted.refusal().is_some() {
            wanted.queue = None;
        }
        Some(key)
    }

    /// Forgets the answers of an I/O server whose channel is lost.
    pub(super) fn forget_answers(&mut self, server: usize) {
        for wanted in self.wanted.values_mut() {
            wanted.answers.remove(&server);
        }
    }

    pub(super) fn queue(
        &mut self,
        server: usize,
        listener: ListenerTag,
    ) -> Option<mpsc::Sender<Accepted>> {
        self.find(server, listener)?.1.queue.clone()
    }

    pub(super) fn outcome(&self, key: u64) -> Outcome {
        let Some(wanted) = self.wanted.get(&key) else {
            return Outcome::Refused(Errno::ABORTED);
        };
        let listens = |(_, answer): &(_, Answer)| *answer == Answer::Listening;
        match wanted.refusal() {
            _ if wanted.answers.values().any(listens) => Outcome::Listening(wanted.port),
            Some(errno) => Outcome::Refused(errno),
            None => Outcome::Waiting,
        }
    }

    pub(super) fn ports(&self) -> Vec<(u16, Family, usize)> {
        let listens = |(_, answer): &&(_, Answer)| *answer == Answer::Listening;
        (self.wanted.values())
            .map(|wanted| {
                let servers = wanted.answers.values().filter(listens).count();
                (wanted.port, wanted.family, servers)
            })
            .collect()
    }

    fn find(&mut self, server: usize, listener: ListenerTag) -> Option<(u64, &mut Wanted)> {
        let is_it = |wanted: &Wanted| {
            let answer = wanted.answers.get(&server);
            answer.is_some_and(|(of, _)| *of == listener)
        };
        let mut all = self.wanted.iter_mut();
        all.find_map(|(key, wanted)| is_it(wanted).then_some((*key, wanted)))
    }
}

impl Wanted {
    /// The reason why no I/O server listens, if all that could be asked have refused.
    fn refusal(&self) -> Option<Errno> {
        let mut refusals = self.answers.values().map(|(_, answer)| match answer {
            Answer::Refused(errno) => Some(*errno),
            _ => None,
        });
        refusals
            .clone()
            .all(|refusal| refusal.is_some())
            .then(|| refusals.next())??
    }
}
