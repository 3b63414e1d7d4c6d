//! Checks the lockdown of the kernel, which forbids some things even to root.

use baton_dataplane::kernel::{Kernel, Lockdown, Part};

use crate::doctor::finding::Finding;

const NAME: &str = "lockdown";

/// Judges whether the lockdown allows these programs. Under "confidentiality" no program may read the kernel's memory
/// by bpf_probe_read_kernel, as the programs of virtual sockets do. The programs of other nodes read it by typed
/// pointers only, which stays allowed.
pub fn judge(kernel: &Kernel, parts: &[Part]) -> Finding {
    match kernel.lockdown {
        Lockdown::Off => Finding::good(NAME, "off"),
        Lockdown::Integrity => Finding::good(NAME, "integrity, under which baton works fully"),
        Lockdown::Confidentiality if parts.contains(&Part::Sockets) => Finding::bad(
            NAME,
            "confidentiality",
            "Under it no program may call bpf_probe_read_kernel, which the programs of virtual sockets need: start \
             the kernel with lockdown=integrity, or without it.",
        ),
        Lockdown::Confidentiality => {
            Finding::good(NAME, "confidentiality, under which this node works fully")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    #[test]
    fn only_virtual_sockets_read_memory() {
        let verdict = |lockdown, part| {
            let kernel = Kernel {
                lockdown,
                ..Kernel::default()
            };
            judge(&kernel, &[part]).verdict()
        };
        assert_eq!(verdict(Lockdown::Off, Part::Sockets), Good);
        assert_eq!(verdict(Lockdown::Integrity, Part::Sockets), Good);
        assert_eq!(verdict(Lockdown::Confidentiality, Part::Sockets), Bad);
        assert_eq!(verdict(Lockdown::Confidentiality, Part::DataServer), Good);
    }
}
