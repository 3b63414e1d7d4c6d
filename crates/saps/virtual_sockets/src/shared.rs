//! What the tasks of all calls and ports of an agent share.

use std::sync::Arc;

use baton_dataplane::{AppListener, AppMaps};
use tokio::sync::watch;

use crate::{Counters, RefusedPorts, options::Setters};

pub(crate) struct Shared<F> {
    pub far: F,
    pub maps: Arc<AppMaps>,
    pub counters: Arc<Counters>,
    pub refused: Arc<RefusedPorts>,
    pub setters: Arc<Setters>,
    /// All listeners of this node's programs.
    pub listeners: watch::Receiver<Vec<AppListener>>,
}
