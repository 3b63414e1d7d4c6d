//! Options that programs set on connections, brought to their far ends.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use baton_dataplane::AppOptions;

type Setter = Box<dyn Fn(AppOptions) + Send>;

/// What sets them, by the program's end of a connection and the agent's.
#[derive(Default)]
pub(crate) struct Setters {
    all: Mutex<HashMap<(SocketAddr, SocketAddr), Setter>>,
}

/// A connection's options are set for as long as this lives.
pub(crate) struct Known {
    setters: Arc<Setters>,
    ends: (SocketAddr, SocketAddr),
}

impl Setters {
    /// From now on; to be said before the program can have the connection.
    pub fn know(
        self: &Arc<Self>,
        program: SocketAddr,
        agent: SocketAddr,
        setter: impl Fn(AppOptions) + Send + 'static,
    ) -> Known {
        let ends = (program, agent);
        self.lock().insert(ends, Box::new(setter));
        Known {
            setters: Arc::clone(self),
            ends,
        }
    }

    /// Sets them, or does nothing if the connection has ended.
    pub fn set(&self, program: SocketAddr, agent: SocketAddr, options: AppOptions) {
        if let Some(setter) = self.lock().get(&(program, agent)) {
            setter(options);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(SocketAddr, SocketAddr), Setter>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.setters.lock().remove(&self.ends);
    }
}
