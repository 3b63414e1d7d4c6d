//! What libbpf prints while it loads programs: only there are the kernel's reasons.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use libbpf_rs::PrintLevel;

static MESSAGES: Mutex<String> = Mutex::new(String::new());

/// From now on, keeps what libbpf says for [`take_messages`]. What was kept before is dropped.
pub(crate) fn collect_messages() {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, message| {
            kept().push_str(&message);
        })));
    });
    take_messages();
}

/// Returns what libbpf has said since [`collect_messages`].
pub(crate) fn take_messages() -> String {
    std::mem::take(&mut *kept())
}

fn kept() -> MutexGuard<'static, String> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}
