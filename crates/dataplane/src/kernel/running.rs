//! The kernel that runs, and what it lets this process do.

use std::{fmt, fs, io};

use crate::sys;

/// Version of Linux, without what distributions add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32, pub u32);

impl Release {
    /// Reads the version from what uname(2) says, such as "6.12.9+deb13-amd64".
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some(Self(next()?, next()?))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What the security module lockdown forbids even to root (kernel_lockdown(7)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lockdown {
    /// Nothing, or there is no such module.
    #[default]
    Off,
    /// Whatever changes the kernel.
    Integrity,
    /// Also whatever reads its memory, as some BPF helpers do.
    Confidentiality,
}

/// The kernel that runs, and what this process may do with it.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// What uname(2) says.
    pub name: String,
    /// The version in `name`, as numbers.
    pub release: Option<Release>,
    /// Whether the kernel shows its type information.
    pub has_btf: bool,
    /// What the kernel forbids to everybody.
    pub lockdown: Lockdown,
    /// Whether this process is in the user namespace of the machine, whose root alone may load programs.
    pub owns_machine: bool,
    /// The errno with which the kernel refuses a map of a few bytes, which is the least that BPF can be asked for.
    pub refuses_maps: Option<i32>,
    /// Whether this process may load programs.
    pub may_load: bool,
    /// Whether programs are only interpreted, as far as this network namespace tells.
    pub interprets: bool,
}

/// Where the kernel shows its type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";

impl Kernel {
    /// Looks at the running kernel. Nothing is changed.
    pub fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let name = read("/proc/sys/kernel/osrelease").trim().to_owned();
        let has_btf = fs::metadata(BTF).is_ok_and(|file| file.len() > 0);
        let refuses_maps = sys::try_map()
            .err()
            .map(|error| error.raw_os_error().unwrap_or(0));
        Self {
            release: Release::parse(&name),
            name,
            has_btf,
            lockdown: lockdown(
                fs::read_to_string("/sys/kernel/security/lockdown"),
                &read("/proc/cmdline"),
            ),
            owns_machine: owns_machine(&read("/proc/self/uid_map")),
            refuses_maps,
            may_load: refuses_maps.is_none() && sys::may_load(),
            interprets: read("/proc/sys/net/core/bpf_jit_enable").trim() == "0",
        }
    }
}

/// The level of lockdown. The module marks it with brackets. If its file system is not mounted, the command line tells
/// what was asked for at boot.
fn lockdown(levels: io::Result<String>, command_line: &str) -> Lockdown {
    let level = match &levels {
        Ok(levels) => levels
            .split_once('[')
            .and_then(|(_, rest)| rest.split(']').next()),
        Err(_) => command_line
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("lockdown="))
            .next_back(),
    };
    match level {
        Some("integrity") => Lockdown::Integrity,
        Some("confidentiality") => Lockdown::Confidentiality,
        _ => Lockdown::Off,
    }
}

/// Whether this is the machine's own user namespace, which maps every user to itself.
fn owns_machine(uid_map: &str) -> bool {
    let numbers: Vec<&str> = uid_map.split_whitespace().collect();
    // A kernel without user namespaces has no such file.
    numbers.is_empty() || numbers == ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let release = |text| Release::parse(text);
        assert_eq!(release("6.12.9+deb13-amd64"), Some(Release(6, 12)));
        assert_eq!(release("7.0-rc1"), Some(Release(7, 0)));
        assert!(release("6.10.1") > release("6.9.12"));
        for wrong in ["", "linux", "6"] {
            assert_eq!(release(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lockdown_is_what_the_module_says() {
        let told = |text: &str| lockdown(Ok(text.into()), "lockdown=confidentiality");
        assert_eq!(told("[none] integrity confidentiality\n"), Lockdown::Off);
        assert_eq!(
            told("none [integrity] confidentiality\n"),
            Lockdown::Integrity
        );
        assert_eq!(
            told("none integrity [confidentiality]\n"),
            Lockdown::Confidentiality
        );
        let untold = |line| lockdown(Err(io::ErrorKind::NotFound.into()), line);
        assert_eq!(untold("quiet lockdown=integrity"), Lockdown::Integrity);
        assert_eq!(untold("quiet"), Lockdown::Off);
    }

    #[test]
    fn a_container_of_a_user_is_not_the_machine() {
        assert!(owns_machine("         0          0 4294967295\n"));
        assert!(owns_machine(""));
        assert!(!owns_machine("         0       1000          1\n"));
    }
}
