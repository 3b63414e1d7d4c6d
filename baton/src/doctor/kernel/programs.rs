//! Checks whether the programs really load, which decides whether a node can work here.

use baton_dataplane::{App, Error, Options, Programs, XdpChoice, kernel::Part};

use crate::doctor::finding::Finding;

/// Loads the programs for these roles, unpinned and attached to nothing, and unloads them again. Whatever features a
/// kernel claims to have, only its verifier decides. `may_try` is false if an earlier finding already says why they
/// cannot be loaded; then nothing is loaded. The text is the end of the verifier's log if it refused a program.
pub fn check(parts: &[Part], roles: u32, may_try: bool) -> (Finding, Option<String>) {
    if !may_try {
        let finding = Finding::advice(
            NAME,
            "not tried",
            "Only loading them shows whether this kernel's verifier takes them, and what is BAD above keeps them \
             from being loaded: mend that first.",
        );
        return (finding, None);
    }
    let loaded = if parts.contains(&Part::Sockets) {
        App::load(None).map(drop)
    } else {
        let options = Options {
            roles,
            flows: 64,
            kept_requests: 1024,
            frags: false,
            xdp: XdpChoice::default(),
            pins: None,
        };
        Programs::load(&options).map(drop)
    };
    let log = match &loaded {
        Err(Error::Load(refusal)) => Some(refusal.last_lines(LINES)),
        _ => None,
    };
    (judge(loaded.err().map(|error| error.to_string())), log)
}

const NAME: &str = "programs";
/// The number of lines of the verifier's log that a report gets.
const LINES: usize = 200;

fn judge(error: Option<String>) -> Finding {
    match error {
        None => Finding::good(NAME, "load: this kernel's verifier takes them"),
        Some(error) => Finding::bad(NAME, error, "Without its programs a node does nothing."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn they_load_or_it_is_said_why_not() {
        assert_eq!(judge(None).verdict(), Good);
        let bad = judge(Some("cannot load the BPF programs: why".into()));
        assert_eq!(bad.verdict(), Bad);
        assert!(bad.found().ends_with("why"));
    }

    #[test]
    fn untried_nothing_is_claimed() {
        let (finding, log) = check(&[Part::DataServer], 2, false);
        assert_eq!((finding.verdict(), log), (Advice, None));
    }
}
