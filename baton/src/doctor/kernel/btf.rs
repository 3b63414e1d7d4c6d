//! Checks the kernel's type information (BTF).

use baton_dataplane::kernel::Kernel;

use crate::doctor::finding::Finding;

/// Judges whether the kernel has BTF. The programs use it to find the kernel's structures and functions, so none can
/// be loaded without it.
pub fn judge(kernel: &Kernel) -> Finding {
    if kernel.has_btf {
        return Finding::good("btf", "/sys/kernel/btf/vmlinux");
    }
    Finding::bad(
        "btf",
        "this kernel shows no type information: there is no /sys/kernel/btf/vmlinux",
        "The programs find the kernel's structures and functions by it: run a kernel built with \
         CONFIG_DEBUG_INFO_BTF=y, and mount sysfs at /sys.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    #[test]
    fn there_or_not() {
        let with = |has_btf| Kernel {
            has_btf,
            ..Kernel::default()
        };
        assert_eq!(judge(&with(true)).verdict(), Good);
        assert_eq!(judge(&with(false)).verdict(), Bad);
    }
}
