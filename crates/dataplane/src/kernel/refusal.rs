//! Says in one sentence why the kernel refused to load programs: which feature is missing, or which rule forbids it.
//! What the verifier said is kept aside for baton's developers.

use std::fmt;

use nix::errno::Errno;

use super::{
    feature::{self, Feature, Part, Presence},
    running::{Kernel, Lockdown, Release},
};

/// The kernel's refusal to load programs.
#[derive(Debug)]
pub struct Refusal {
    /// Why the programs were not loaded.
    pub cause: Cause,
    /// All that libbpf and the verifier said.
    pub log: String,
}

/// A cause that somebody can do something about.
#[derive(Debug)]
pub enum Cause {
    /// The kernel has no BPF at all.
    NoBpf,
    /// The kernel shows no type information.
    NoBtf,
    /// The kernel lacks features that the programs use.
    Lacks {
        /// What uname(2) says.
        kernel: String,
        /// The features that are missing, the newest first.
        features: Vec<&'static Feature>,
    },
    /// The kernel does not compile programs.
    NoJit,
    /// This process is root of a user namespace only.
    UserNamespace,
    /// This process lacks capabilities, or a filter refuses the system call.
    Forbidden,
    /// The lockdown module lets no program read the kernel's memory.
    Lockdown {
        /// The program that reads the kernel's memory.
        program: String,
    },
    /// There was no memory for a map or a program.
    NoMemory {
        /// The map or program for which there was no memory.
        what: String,
    },
    /// The kernel has all features that are used, and its verifier rejects the program nevertheless.
    Verifier {
        /// The program that was rejected.
        program: String,
        /// What uname(2) says.
        kernel: String,
    },
    /// Something else.
    Other {
        /// What libbpf said.
        reason: String,
    },
}

/// Finds out why programs were not loaded. `reason` is the error, `log` what was said before it.
pub(crate) fn judge(parts: &[Part], reason: &str, log: String) -> Refusal {
    let kernel = Kernel::look();
    let missing = feature::probe(parts, &kernel)
        .into_iter()
        .filter(|(_, presence)| *presence == Presence::Missing)
        .map(|(feature, _)| feature)
        .collect();
    Refusal {
        cause: cause(&kernel, missing, reason, &log),
        log,
    }
}

/// The first cause that is true, because each one explains those below it.
fn cause(kernel: &Kernel, missing: Vec<&'static Feature>, reason: &str, log: &str) -> Cause {
    match kernel.refuses_maps.map(Errno::from_raw) {
        Some(Errno::ENOSYS) => return Cause::NoBpf,
        Some(Errno::EPERM) if !kernel.owns_machine => return Cause::UserNamespace,
        Some(Errno::EPERM) => return Cause::Forbidden,
        _ => {}
    }
    if !kernel.has_btf {
        return Cause::NoBtf;
    }
    if !missing.is_empty() {
        return Cause::Lacks {
            kernel: kernel.name.clone(),
            features: missing,
        };
    }
    if kernel.interprets || log.contains("JIT is required") {
        return Cause::NoJit;
    }
    match Failed::find(log) {
        Some(failed) if failed.why == "-ENOMEM" => Cause::NoMemory { what: failed.what },
        Some(failed) if failed.why == "-EPERM" && !kernel.owns_machine => Cause::UserNamespace,
        Some(failed) if failed.why == "-EPERM" => Cause::Forbidden,
        Some(failed)
            if failed.is_program
                && kernel.lockdown == Lockdown::Confidentiality
                && log.contains("bpf_probe_read") =>
        {
            Cause::Lockdown {
                program: failed.what,
            }
        }
        Some(failed) if failed.is_program => Cause::Verifier {
            program: failed.what,
            kernel: kernel.name.clone(),
        },
        _ => Cause::Other {
            reason: match log.lines().next_back() {
                Some(last) => format!("{reason}: {last}"),
                None => reason.to_owned(),
            },
        },
    }
}

/// What failed, as libbpf says it: "libbpf: prog 'NAME': BPF program load failed: -EACCES", "libbpf: map 'NAME':
/// failed to create: -ENOMEM".
struct Failed {
    what: String,
    why: String,
    is_program: bool,
}

impl Failed {
    fn find(log: &str) -> Option<Self> {
        log.lines().find_map(|line| {
            let (kind, rest) = line.strip_prefix("libbpf: ")?.split_once(" '")?;
            let (name, said) = rest.split_once("': ")?;
            let (doing, why) = said.rsplit_once(": ")?;
            let is_program = kind == "prog" && doing == "BPF program load failed";
            let is_map = kind == "map" && doing.starts_with("failed to create");
            (is_program || is_map).then(|| Self {
                what: format!("{} {name}", if is_program { "program" } else { "map" }),
                why: why.to_owned(),
                is_program,
            })
        })
    }
}

impl Refusal {
    /// The last lines of what was said, where the verifier's reason is.
    pub fn last_lines(&self, count: usize) -> String {
        let lines: Vec<&str> = self.log.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBpf => f.write_str(
                "there is no bpf system call here: run a kernel built with CONFIG_BPF_SYSCALL=y, and let no \
                 seccomp filter hide the call",
            ),
            Self::NoBtf => f.write_str(
                "this kernel shows no type information (BTF), by which the programs find its structures and \
                 functions: there is no /sys/kernel/btf/vmlinux; run a kernel built with \
                 CONFIG_DEBUG_INFO_BTF=y, and mount sysfs at /sys",
            ),
            Self::Lacks { kernel, features } => lacks(f, kernel, features),
            Self::NoJit => f.write_str(
                "this kernel only interprets BPF programs, and only compiled ones may call its functions: \
                 sysctl -w net.core.bpf_jit_enable=1",
            ),
            Self::UserNamespace => f.write_str(
                "this is root of a user namespace, as in a rootless container, and only root of the machine may \
                 load BPF programs: run it there",
            ),
            Self::Forbidden => f.write_str(
                "the kernel does not permit it: run it as root with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, \
                 and let no seccomp filter refuse bpf(2)",
            ),
            Self::Lockdown { program } => write!(
                f,
                "the kernel is locked down (confidentiality), so that no program may read its memory, as the \
                 {program} does: start the kernel with lockdown=integrity, or without it"
            ),
            Self::NoMemory { what } => write!(
                f,
                "there is no memory for the {what}: lower flows or kept_requests under [cs], or raise the limit \
                 of this control group (memory.max; systemd: MemoryMax=) or the machine's memory"
            ),
            Self::Verifier { program, kernel } => write!(
                f,
                "this kernel (Linux {kernel}) has every feature that baton uses, and its verifier refuses the \
                 {program} nevertheless, which is a fault of baton: please report the kernel's version with what \
                 `baton doctor --verbose` prints, and use another kernel until then"
            ),
            Self::Other { reason } => f.write_str(reason),
        }
    }
}

/// Says which features are missing. The newest one decides which kernel is needed.
fn lacks(f: &mut fmt::Formatter<'_>, kernel: &str, features: &[&Feature]) -> fmt::Result {
    let names: Vec<&str> = features.iter().map(|feature| feature.name).collect();
    write!(f, "this kernel (Linux {kernel}) lacks {}", names.join(", "))?;
    let Some(newest) = features.first() else {
        return Ok(());
    };
    write!(
        f,
        ": {}; {}",
        newest.purpose,
        newest.remedy(Release::parse(kernel))
    )
}

impl Feature {
    /// What to do if the feature is missing. A kernel that is new enough was built without it.
    pub fn remedy(&self, kernel: Option<Release>) -> String {
        let since = self.since;
        match (self.option, kernel) {
            (Some(option), Some(kernel)) if kernel >= since => {
                format!("run a kernel built with {option}")
            }
            (Some(option), _) => {
                format!("run Linux {since} or newer, built with {option}")
            }
            (None, _) => format!("run Linux {since} or newer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::used_by;

    fn able() -> Kernel {
        Kernel {
            name: "6.12.9".into(),
            release: Some(Release(6, 12)),
            has_btf: true,
            owns_machine: true,
            may_load: true,
            ..Kernel::default()
        }
    }

    const REFUSED: &str = "libbpf: prog 'baton_ds': BPF program load failed: -EACCES\n\
                           libbpf: prog 'baton_ds': -- BEGIN PROG LOAD LOG --\n\
                           R1 invalid mem access 'scalar'\n\
                           -- END PROG LOAD LOG --\n\
                           libbpf: prog 'baton_ds': failed to load: -EACCES\n";

    fn said(kernel: &Kernel, missing: Vec<&'static Feature>, log: &str) -> String {
        let said = cause(kernel, missing, "cannot load", log).to_string();
        assert!(!said.contains('\n'), "not one sentence: {said}");
        said
    }

    /// The features that a data server's programs use and that came with this version of Linux.
    fn of_data_server(since: Release) -> Vec<&'static Feature> {
        used_by(&[Part::DataServer])
            .filter(|feature| feature.since == since)
            .collect()
    }

    #[test]
    fn an_older_kernel_is_told_which_one_it_takes() {
        let old = Kernel {
            name: "6.6.30-generic".into(),
            release: Some(Release(6, 6)),
            ..able()
        };
        let said = said(&old, of_data_server(Release(6, 9)), REFUSED);
        assert_eq!(
            said,
            "this kernel (Linux 6.6.30-generic) lacks bpf_sk_assign_tcp_reqsk: a data server adopts \
             connections with it; run Linux 6.9 or newer, built with CONFIG_SYN_COOKIES=y"
        );
    }

    #[test]
    fn a_new_one_that_was_built_without_is_told_the_option() {
        let said = said(&able(), of_data_server(Release(6, 6)), "");
        assert!(said.contains("lacks tcx: "), "{said}");
        assert!(
            said.ends_with(
                "run a kernel built with CONFIG_NET_XGRESS=y, which CONFIG_NET_CLS_ACT=y selects"
            ),
            "{said}"
        );
    }

    #[test]
    fn the_verifier_is_named_only_if_nothing_is_missing() {
        let verifier = said(&able(), Vec::new(), REFUSED);
        assert!(
            verifier.contains("verifier refuses the program baton_ds"),
            "{verifier}"
        );
        assert!(verifier.contains("Linux 6.12.9"), "{verifier}");
        assert!(!verifier.contains("invalid mem access"), "{verifier}");
        let missing = said(&able(), of_data_server(Release(6, 9)), REFUSED);
        assert!(!missing.contains("verifier"), "{missing}");
    }

    #[test]
    fn without_type_information_nothing_else_is_asked() {
        let blind = Kernel {
            has_btf: false,
            ..able()
        };
        let said = said(&blind, of_data_server(Release(6, 9)), REFUSED);
        assert!(said.contains("CONFIG_DEBUG_INFO_BTF=y"), "{said}");
    }

    #[test]
    fn who_may_not_is_told_why() {
        let refusing = |errno, owns_machine| Kernel {
            refuses_maps: Some(errno as i32),
            owns_machine,
            ..able()
        };
        let forbidden = said(&refusing(Errno::EPERM, true), Vec::new(), "");
        assert!(forbidden.contains("CAP_BPF"), "{forbidden}");
        let inside = said(&refusing(Errno::EPERM, false), Vec::new(), "");
        assert!(inside.contains("user namespace"), "{inside}");
        let none = said(&refusing(Errno::ENOSYS, true), Vec::new(), "");
        assert!(none.contains("CONFIG_BPF_SYSCALL=y"), "{none}");
        let programs_only = "libbpf: prog 'baton_ds': BPF program load failed: -EPERM";
        let programs_only = said(&able(), Vec::new(), programs_only);
        assert!(programs_only.contains("CAP_BPF"), "{programs_only}");
    }

    #[test]
    fn memory() {
        let log = "libbpf: map 'tcbs': failed to create: -ENOMEM\nlibbpf: failed to load object";
        let said = said(&able(), Vec::new(), log);
        assert!(said.contains("no memory for the map tcbs"), "{said}");
        assert!(said.contains("memory.max"), "{said}");
    }

    #[test]
    fn lockdown() {
        let locked = Kernel {
            lockdown: Lockdown::Confidentiality,
            ..able()
        };
        let log = "libbpf: prog 'baton_app_bind4': BPF program load failed: -EINVAL\n\
                   program of this type cannot use helper bpf_probe_read_kernel#113";
        let refused = said(&locked, Vec::new(), log);
        assert!(refused.contains("lockdown=integrity"), "{refused}");
        assert!(refused.contains("baton_app_bind4"), "{refused}");
        let unlocked = said(&able(), Vec::new(), log);
        assert!(!unlocked.contains("lockdown"), "{unlocked}");
    }

    #[test]
    fn no_compiler() {
        let interprets = Kernel {
            interprets: true,
            ..able()
        };
        let by_setting = said(&interprets, Vec::new(), REFUSED);
        let by_log = "libbpf: prog 'baton_ds': BPF program load failed: -524\n\
                      JIT is required for calling kernel function";
        let by_log = said(&able(), Vec::new(), by_log);
        for said in [by_setting, by_log] {
            assert!(said.contains("bpf_jit_enable=1"), "{said}");
        }
    }

    #[test]
    fn what_nobody_foresaw_is_said_as_it_is() {
        let said = said(&able(), Vec::new(), "libbpf: elf: no such section");
        assert_eq!(said, "cannot load: libbpf: elf: no such section");
    }

    #[test]
    fn only_the_last_lines_are_logged() {
        let refusal = Refusal {
            cause: Cause::NoJit,
            log: "a\nb\nc\n".into(),
        };
        assert_eq!(refusal.last_lines(2), "b\nc");
        assert_eq!(refusal.last_lines(9), "a\nb\nc");
    }
}
