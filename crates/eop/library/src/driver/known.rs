//! Servers that were found to be plain. They are not asked again for a while.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

/// How long a server counts as plain. It may be upgraded meanwhile.
const FOR: Duration = Duration::from_secs(600);
const MOST: usize = 4096;

static PLAIN: LazyLock<Mutex<HashMap<SocketAddr, Instant>>> = LazyLock::new(Mutex::default);

pub(crate) fn is_plain(server: SocketAddr) -> bool {
    let Ok(plain) = PLAIN.lock() else {
        return false;
    };
    plain
        .get(&server)
        .is_some_and(|since| since.elapsed() < FOR)
}

pub(crate) fn found_plain(server: SocketAddr) {
    if let Ok(mut plain) = PLAIN.lock() {
        if plain.len() >= MOST {
            plain.retain(|_, since| since.elapsed() < FOR);
        }
        if plain.len() < MOST {
            plain.insert(server, Instant::now());
        }
    }
}
