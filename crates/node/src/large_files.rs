//! Size classes: looks at the files of this data server again and again, tells the nodes that judge requests what is
//! large, and hears from other nodes what is large there.

mod tell;

use std::{collections::HashMap, net::SocketAddrV4, time::Duration};

use baton_config::{Large, Service};
use baton_core::sizes::Known;
use baton_wire::{HashKey, LargePaths};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::{
    data_server::document_root::{Found, walk},
    owned_task::OwnedTask,
    places::endpoint,
};

/// The pause between two walks.
const INTERVAL: Duration = Duration::from_secs(5);

/// What one walk through the files of a service on this node has found.
pub struct WalkResult {
    service: SocketAddrV4,
    found: Found,
}

/// A running walk, with its settings.
struct Walk {
    large: Large,
    key: HashKey,
    /// Ends with this.
    _task: OwnedTask,
}

/// The running walks, what they found, and what is large on other nodes.
pub struct LargeFiles {
    walks: HashMap<SocketAddrV4, Walk>,
    /// What is large here. `is_told` is true once there was something to tell other nodes.
    own: LargePaths,
    is_told: bool,
    pub(super) known: Known,
    sender: mpsc::Sender<WalkResult>,
}

impl LargeFiles {
    /// Begins without walks. What walks find will be sent to `sender`.
    pub fn new(sender: mpsc::Sender<WalkResult>) -> Self {
        Self {
            walks: HashMap::new(),
            own: LargePaths::default(),
            is_told: false,
            known: Known::default(),
            sender,
        }
    }

    /// From now on, walks for exactly those of these services that have size classes, and hashes paths under this key.
    /// Walks whose settings stay the same go on.
    pub fn follow<'a>(
        &mut self,
        key: HashKey,
        services: impl IntoIterator<Item = (SocketAddrV4, &'a Service)>,
    ) {
        let mut before = std::mem::take(&mut self.walks);
        for (at, service) in services {
            let Some(large) = &service.large else {
                continue;
            };
            let walk = match before.remove(&at) {
                Some(walk) if walk.large == *large && walk.key == key => walk,
                _ => {
                    let name = service.name.to_string();
                    let sender = self.sender.clone();
                    Walk {
                        large: large.clone(),
                        key,
                        _task: OwnedTask::spawn(look(at, name, large.clone(), key, sender)),
                    }
                }
            };
            self.walks.insert(at, walk);
        }
        let walks = &self.walks;
        let walked = |at| walks.keys().any(|walked| endpoint(*walked) == at);
        self.own.keep(walked);
    }

    /// What is large here, in the form in which other nodes are told. `None` if nothing was ever found, or looked for.
    fn text(&mut self) -> Option<Vec<u8>> {
        self.is_told |= self.own != LargePaths::default();
        self.is_told.then(|| self.own.write())
    }

    /// Takes note of what a walk has found. Returns whether that differs from what the walk before it found.
    fn note(&mut self, looked: WalkResult) -> bool {
        // A walk that was stopped may still have had a result under way.
        if !self.walks.contains_key(&looked.service) {
            return false;
        }
        let count = looked.found.large.len();
        let changed = self.own.set(endpoint(looked.service), looked.found.large);
        if changed {
            info!(service = %looked.service, "{count} large file(s) here");
            let left_out = self.own.left_out();
            if left_out > 0 {
                warn!(
                    "{left_out} large file(s) do not fit the list for other nodes: they count as small"
                );
            }
        }
        changed
    }
}

/// Walks again and again until nobody receives the results. A problem is logged once, and again only after it has
/// changed.
async fn look(
    service: SocketAddrV4,
    name: String,
    large: Large,
    key: HashKey,
    sender: mpsc::Sender<WalkResult>,
) {
    let mut said = String::new();
    loop {
        let (root, larger_than) = (large.root.clone(), large.larger_than);
        // The walk runs on a thread of its own, because many files take a while.
        let walked = tokio::task::spawn_blocking(move || walk(&root, larger_than, key)).await;
        let (found, word) = match walked {
            Ok(Ok(found)) => {
                let word = shortcomings(&found);
                (Some(found), word)
            }
            Ok(Err(error)) => (
                None,
                format!("{error:#}: cannot tell which files here are large"),
            ),
            Err(error) => (None, error.to_string()),
        };
        if word != said && !word.is_empty() {
            warn!(service = name, root = %large.root.display(), "{word}");
        }
        said = word;
        if let Some(found) = found
            && sender.send(WalkResult { service, found }).await.is_err()
        {
            return;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

fn shortcomings(found: &Found) -> String {
    let mut words = Vec::new();
    if found.cut_off {
        words.push(
            "there are more files than one walk looks at: the rest count as small".to_owned(),
        );
    }
    if found.too_long > 0 {
        words.push(format!(
            "the paths of {} large file(s) are too long: they count as small",
            found.too_long
        ));
    }
    words.join("; ")
}
