//! Checks the kernel's limit for accept queues, net.core.somaxconn.

use crate::doctor::{finding::Finding, kernel::proc};

/// Checks the limit. An adopted connection waits in the server's accept queue like any other. If the queue is full, the
/// kernel drops the request, and the client sends it again after 200 ms or more.
pub fn check() -> Finding {
    judge(
        proc::setting("net/core/somaxconn")
            .as_deref()
            .unwrap_or_default(),
    )
}

const NAME: &str = "somaxconn";
/// The default of Linux since 5.4.
const ENOUGH: u64 = 4096;

fn judge(somaxconn: &str) -> Finding {
    match somaxconn.parse::<u64>() {
        Ok(limit) if limit >= ENOUGH => Finding::good(NAME, somaxconn),
        _ => Finding::advice(
            NAME,
            if somaxconn.is_empty() {
                "unknown"
            } else {
                somaxconn
            },
            format!(
                "No accept queue holds more connections than this, whatever backlog its server asks for. If a \
                 queue is full, further requests are dropped, and clients send them again after 200 ms or more. Set \
                 sysctl -w net.core.somaxconn={ENOUGH}, and give the server a backlog as large (nginx: listen … \
                 backlog={ENOUGH})."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn a_small_limit_is_advice() {
        assert_eq!(judge("4096").verdict(), Good);
        assert_eq!(judge("65535").verdict(), Good);
        assert_eq!(judge("128").verdict(), Advice);
        assert_eq!(judge("").verdict(), Advice);
    }
}
