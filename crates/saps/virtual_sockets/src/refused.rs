//! The ports that programs listen on and the I/O server does not.

use std::{
    collections::BTreeMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::Family;

/// A port that the I/O server has refused. The agent asks for it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPort {
    /// The port's number.
    pub port: u16,
    /// The IP versions of the cluster addresses that were asked for.
    pub family: Family,
    /// The error that the I/O server reported last.
    pub reason: String,
}

/// All ports that are refused at the moment.
#[derive(Debug, Default)]
pub struct RefusedPorts {
    all: Mutex<BTreeMap<(u16, Family), String>>,
}

/// Forgets a port's refusal when dropped: the program no longer listens.
pub(crate) struct Asked<'a> {
    ports: &'a RefusedPorts,
    port: u16,
    family: Family,
}

impl RefusedPorts {
    /// Lists the refused ports in ascending order.
    pub fn list(&self) -> Vec<RefusedPort> {
        (self.lock().iter())
            .map(|((port, family), reason)| RefusedPort {
                port: *port,
                family: *family,
                reason: reason.clone(),
            })
            .collect()
    }

    pub(crate) fn ask(&self, port: u16, family: Family) -> Asked<'_> {
        Asked {
            ports: self,
            port,
            family,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u16, Family), String>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked<'_> {
    pub(crate) fn refused(&self, error: &io::Error) {
        let key = (self.port, self.family);
        self.ports.lock().insert(key, error.to_string());
    }

    pub(crate) fn granted(&self) {
        self.ports.lock().remove(&(self.port, self.family));
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.granted();
    }
}
