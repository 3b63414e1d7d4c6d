//! Checks how many connections may wait for a server to accept them.

use crate::doctor::{finding::Finding, kernel::proc};

/// Checks the limit of accept queues. An adopted connection waits in the server's accept queue like any other. If the
/// queue is full, the request is dropped, and comes again only after a second or more.
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
                "It is the most connections that may wait to be accepted; requests beyond are dropped and \
                 come again only after a second or more. sysctl -w net.core.somaxconn={ENOUGH}, and give \
                 the server a backlog as large (nginx: listen … backlog={ENOUGH})."
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Good};

    #[test]
    fn small_queues_are_advice() {
        assert_eq!(judge("4096").verdict(), Good);
        assert_eq!(judge("65535").verdict(), Good);
        assert_eq!(judge("128").verdict(), Advice);
        assert_eq!(judge("").verdict(), Advice);
    }
}
