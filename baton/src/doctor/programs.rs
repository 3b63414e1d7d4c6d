//! Whether the programs really load: the check that decides.

use baton_dataplane::{Options, Programs};

use super::finding::Finding;

/// Whatever a kernel claims to have, its verifier has the last word. Loads the programs for these
/// roles, unpinned, attached to nothing, and lets go of them.
pub fn check(roles: u32, privileged: bool) -> Finding {
    if !privileged {
        return Finding::advice(
            NAME,
            "not tried without the privileges it takes",
            "Only loading them shows whether this kernel's verifier takes them: see the finding about \
             privileges.",
        );
    }
    let options = Options {
        roles,
        flows: 64,
        kept_requests: 1024,
        frags: false,
        pins: None,
    };
    judge(
        Programs::load(&options)
            .err()
            .map(|error| error.to_string()),
    )
}

const NAME: &str = "programs";

/// `error`: what went wrong, with the verifier's last lines behind its first.
fn judge(error: Option<String>) -> Finding {
    match error {
        None => Finding::good(NAME, "load: this kernel's verifier takes them"),
        Some(error) => Finding::bad(
            NAME,
            error.trim_end(),
            "Without its programs a node does nothing. Mend the other findings first; if there are \
             none, the lines above are the verifier's: report them with the kernel's version.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn the_verifiers_words_are_shown() {
        assert_eq!(judge(None).verdict(), Good);
        let bad = judge(Some(
            "cannot load\ncalling kernel function is not allowed\n".into(),
        ));
        assert_eq!(bad.verdict(), Bad);
        assert!(bad.found().ends_with("is not allowed"));
    }

    #[test]
    fn unprivileged_nothing_is_claimed() {
        assert_eq!(check(3, false).verdict(), Advice);
    }
}
