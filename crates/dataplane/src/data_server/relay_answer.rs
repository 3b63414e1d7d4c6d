//! The answers of servers in containers, kept on this host for the relay.

use std::collections::BTreeSet;

use crate::{Dataplane, Error, loading::attach};

impl Dataplane {
    /// Attaches the program that keeps answers to the relay on this host to exactly these interfaces. The links
    /// are not pinned: the relay's connections end with the daemon, so they are of no use after it.
    ///
    /// # Errors
    /// [`Error::Attach`] for the first interface that refuses; the others are attached all the same.
    pub fn keep_relay_answers(&mut self, interfaces: &BTreeSet<u32>) -> Result<(), Error> {
        self.relay_links
            .retain(|interface, _| interfaces.contains(interface));
        let Some(server) = self.as_data_server() else {
            return Ok(());
        };
        let mut made = Vec::new();
        let mut outcome = Ok(());
        for interface in interfaces {
            if self.relay_links.contains_key(interface) {
                continue;
            }
            match attach::attach_relay_answer(&server.relay_answer, *interface) {
                Ok(link) => made.push((*interface, link)),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        self.relay_links.extend(made);
        outcome
    }
}
