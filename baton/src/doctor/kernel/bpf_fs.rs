//! Checks the file system in which programs and maps outlive the daemon.

use std::path::Path;

use super::proc;
use crate::doctor::finding::Finding;

/// Checks that `dir` is in a BPF file system. Pins keep the packet path alive while the daemon restarts, and only a
/// BPF file system holds pins.
pub fn check(dir: &Path) -> Finding {
    let mounts = proc::text("/proc/self/mounts").unwrap_or_default();
    let filesystems = proc::text("/proc/filesystems").unwrap_or_default();
    judge(&mounts, &filesystems, dir)
}

const NAME: &str = "bpf_fs";

fn judge(mounts: &str, filesystems: &str, dir: &Path) -> Finding {
    let why = "Pinned there, programs and maps keep working while the daemon restarts.";
    let known = filesystems
        .lines()
        .any(|line| line.split_whitespace().last() == Some("bpf"));
    let shown = dir.display();
    match mount_of(mounts, dir) {
        Some((point, "bpf")) => Finding::good(NAME, format!("mounted at {point}")),
        _ if !known => Finding::bad(
            NAME,
            "this kernel has no BPF file system",
            format!("{why} Run a kernel built with CONFIG_BPF_SYSCALL=y."),
        ),
        // `Pins::prepare` mounts it there.
        _ if dir.starts_with("/sys/fs/bpf") => {
            Finding::good(NAME, "not mounted yet: the node mounts it at /sys/fs/bpf")
        }
        _ => Finding::bad(
            NAME,
            format!("{shown} is not in a BPF file system"),
            format!(
                "{why} Mount one (mount -t bpf bpf {shown}), or leave bpf_dir at its default below /sys/fs/bpf."
            ),
        ),
    }
}

/// The mount point and the type of the file system that holds `dir`: the longest mount point above it, and the last
/// mount if there are several at that point.
fn mount_of<'a>(mounts: &'a str, dir: &Path) -> Option<(&'a str, &'a str)> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(point, _)| dir.starts_with(point))
        .max_by_key(|(point, _)| point.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict::{Bad, Good};

    const PLAIN: &str = "sysfs /sys sysfs rw 0 0\n/dev/vda / ext4 rw 0 0";
    const MOUNTED: &str =
        "/dev/vda / ext4 rw 0 0\nsysfs /sys sysfs rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0";
    const KNOWN: &str = "nodev\tsysfs\nnodev\tbpf\n\text4";

    fn verdict(mounts: &str, filesystems: &str, dir: &str) -> crate::doctor::finding::Verdict {
        judge(mounts, filesystems, Path::new(dir)).verdict()
    }

    #[test]
    fn mounted_or_mountable() {
        assert_eq!(verdict(MOUNTED, KNOWN, "/sys/fs/bpf/baton"), Good);
        assert_eq!(verdict(PLAIN, KNOWN, "/sys/fs/bpf/baton"), Good);
        let elsewhere = format!("{PLAIN}\nnone /run/bpf bpf rw 0 0");
        assert_eq!(verdict(&elsewhere, KNOWN, "/run/bpf/baton"), Good);
    }

    #[test]
    fn neither() {
        assert_eq!(verdict(PLAIN, "nodev\tsysfs", "/sys/fs/bpf/baton"), Bad);
        assert_eq!(verdict(MOUNTED, KNOWN, "/var/lib/baton"), Bad);
        assert_eq!(verdict(MOUNTED, KNOWN, "/sys/fs/bpfx"), Bad);
        let hidden = format!("{MOUNTED}\ntmpfs /sys/fs/bpf tmpfs rw 0 0");
        assert_eq!(
            mount_of(&hidden, Path::new("/sys/fs/bpf/x")),
            Some(("/sys/fs/bpf", "tmpfs"))
        );
    }
}
