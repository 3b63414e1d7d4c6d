//! What the kernel says it has, in its type information (BTF).

use libbpf_rs::btf::{Btf, types::Func};

use super::finding::Finding;

/// Three findings: BTF itself, the function that adopts, and tcx.
pub fn check() -> Vec<Finding> {
    let btf = Btf::from_vmlinux();
    let has = |function: &str| btf.as_ref().ok().map(|btf| has(btf, function));
    vec![
        judge_btf(btf.as_ref().err().map(ToString::to_string)),
        judge_adopt(has("bpf_sk_assign_tcp_reqsk")),
        judge_tcx(has("tcx_link_attach")),
    ]
}

fn has(btf: &Btf<'_>, function: &str) -> bool {
    btf.type_by_name::<Func<'_>>(function).is_some()
}

/// The programs find the kernel's structures and functions by BTF, so without it none can be loaded.
fn judge_btf(error: Option<String>) -> Finding {
    match error {
        None => Finding::good("btf", "/sys/kernel/btf/vmlinux"),
        Some(error) => Finding::bad(
            "btf",
            format!("no type information of the kernel: {error}"),
            "The programs find the kernel's structures and functions by it: run a kernel built with \
             CONFIG_DEBUG_INFO_BTF=y, and mount sysfs at /sys.",
        ),
    }
}

/// This function makes a socket of a packet in the middle of a connection: it is how a data server
/// adopts.
fn judge_adopt(has: Option<bool>) -> Finding {
    let why = "A data server adopts a connection with bpf_sk_assign_tcp_reqsk:";
    match has {
        Some(true) => Finding::good("adopt_kfunc", "bpf_sk_assign_tcp_reqsk is there"),
        Some(false) => Finding::bad(
            "adopt_kfunc",
            "this kernel has no bpf_sk_assign_tcp_reqsk",
            format!("{why} run Linux 6.9 or newer, built with CONFIG_SYN_COOKIES=y."),
        ),
        None => Finding::advice(
            "adopt_kfunc",
            "unknown without BTF",
            format!("{why} see the finding about btf."),
        ),
    }
}

/// The data server's program hangs on tcx, where other programs can hang before and behind it.
fn judge_tcx(has: Option<bool>) -> Finding {
    let why = "The data server's program is attached by tcx, which came with Linux 6.6:";
    match has {
        Some(true) => Finding::good("tcx", "there"),
        Some(false) => Finding::bad(
            "tcx",
            "this kernel has none",
            format!(
                "{why} run a kernel built with CONFIG_NET_XGRESS=y (CONFIG_NET_CLS_ACT selects it)."
            ),
        ),
        None => Finding::advice(
            "tcx",
            "unknown without BTF",
            format!("{why} see the finding about btf."),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Advice, Bad, Good};

    #[test]
    fn there_not_there_unknown() {
        for judge in [judge_adopt, judge_tcx] {
            let verdicts = [Some(true), Some(false), None].map(|has| judge(has).verdict());
            assert_eq!(verdicts, [Good, Bad, Advice]);
        }
        assert_eq!(judge_btf(None).verdict(), Good);
        assert_eq!(judge_btf(Some("no such file".into())).verdict(), Bad);
    }

    #[test]
    fn functions_are_found_by_name() {
        let Ok(btf) = Btf::from_vmlinux() else {
            eprintln!("functions_are_found_by_name: skipped: this kernel has no BTF");
            return;
        };
        assert!(has(&btf, "tcp_v4_rcv"));
        assert!(!has(&btf, "tcp_v4_rcv_no_such_function"));
    }
}
