//! Checks the BPF just-in-time compiler.

use super::proc;
use crate::doctor::finding::Finding;

/// Checks that BPF programs are compiled. Only compiled programs may call functions of the kernel, as adoption does,
/// and interpreted ones would be many times slower.
pub fn check(programs_load: bool) -> Finding {
    judge(
        proc::setting("net/core/bpf_jit_enable").as_deref(),
        programs_load,
    )
}

const NAME: &str = "bpf_jit";

/// Judges the setting, or, if it is not known, whether the programs load. Network namespaces other than the first do
/// not show the setting, but a program that calls a function of the kernel loads only if it can be compiled.
fn judge(setting: Option<&str>, programs_load: bool) -> Finding {
    let why = "Only compiled programs may call functions of the kernel, as adoption does:";
    match setting {
        Some("0") => Finding::bad(
            NAME,
            "off",
            format!("{why} sysctl -w net.core.bpf_jit_enable=1"),
        ),
        Some(on) => Finding::good(NAME, format!("on ({on})")),
        None if programs_load => {
            Finding::good(NAME, "on: programs that call functions of the kernel load")
        }
        None => Finding::advice(
            NAME,
            "this network namespace does not show it",
            format!("{why} see that net.core.bpf_jit_enable is 1 in the host's own namespace."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn on_off_unknown() {
        assert_eq!(judge(Some("1"), false).verdict(), Good);
        assert_eq!(judge(Some("2"), false).verdict(), Good);
        assert_eq!(judge(Some("0"), false).verdict(), Bad);
        assert_eq!(judge(None, true).verdict(), Good);
        assert_eq!(judge(None, false).verdict(), Advice);
    }
}
