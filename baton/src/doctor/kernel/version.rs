//! Reports the kernel's version. What a kernel has is the matter of the finding on features.

use baton_dataplane::kernel::Kernel;

use crate::doctor::finding::Finding;

const NAME: &str = "kernel";

/// Names the kernel's version, for reports.
pub fn judge(kernel: &Kernel) -> Finding {
    match kernel.release {
        Some(_) => Finding::good(NAME, kernel.name.clone()),
        None => Finding::bad(
            NAME,
            "unknown",
            "baton reads the kernel's version below /proc: mount it (mount -t proc proc /proc).",
        ),
    }
}

#[cfg(test)]
mod tests {
    use baton_dataplane::kernel::Release;

    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    #[test]
    fn named_or_unknown() {
        let named = Kernel {
            name: "6.12.9".into(),
            release: Some(Release(6, 12)),
            ..Kernel::default()
        };
        let good = judge(&named);
        assert_eq!((good.verdict(), good.found()), (Good, "6.12.9"));
        assert_eq!(judge(&Kernel::default()).verdict(), Bad);
    }
}
