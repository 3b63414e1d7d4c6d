//! Tests the journal's file. Needs no privileges.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use baton_net::undo::Step;
use baton_net::{Error, Sysctl, Undo};
use proptest::prelude::*;

fn setting(previous: &str) -> Step {
    Step::Sysctl {
        path: Sysctl::arp_ignore("all").unwrap(),
        previous: previous.into(),
    }
}

#[test]
fn the_oldest_value_is_kept_over_starts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("undo.json");
    let mut undo = Undo::load(&path).unwrap();
    undo.record(setting("0")).unwrap();
    undo.record(setting("1")).unwrap();
    let mut undo = Undo::load(&path).unwrap();
    undo.record(setting("2")).unwrap();
    assert_eq!(undo.steps(), [setting("0")]);
    assert_eq!(Undo::load(&path).unwrap().steps(), [setting("0")]);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let files: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "no temporary file is left: {files:?}");
}

#[test]
fn what_is_forgotten_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("undo.json");
    let mut undo = Undo::load(&path).unwrap();
    undo.record(setting("0")).unwrap();
    assert!(path.exists());
    undo.forget(&setting("1")).unwrap();
    assert!(path.exists());
    undo.forget(&setting("0")).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_journal_of_an_earlier_boot_is_void() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("undo.json");
    Undo::load(&path).unwrap().record(setting("0")).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(boot.trim()));
    fs::write(
        &path,
        text.replace(boot.trim(), "00000000-0000-0000-0000-000000000000"),
    )
    .unwrap();
    assert_eq!(Undo::load(&path).unwrap().steps(), []);
}

#[test]
fn a_broken_journal_is_not_overlooked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("undo.json");
    for text in [
        "",
        "{",
        "[]",
        "{\"version\":1}",
        "{\"version\":2,\"boot\":\"\",\"steps\":[]}",
    ] {
        fs::write(&path, text).unwrap();
        let error = Undo::load(&path).unwrap_err();
        assert!(matches!(error, Error::Journal { .. }), "{text:?}: {error}");
    }
    fs::write(&path, "{\"version\":1,\"boot\":\"\",\"steps\":[{\"step\":\"sysctl\",\"path\":\"net/../../etc/passwd\",\"previous\":\"x\"}]}").unwrap();
    assert!(Undo::load(&path).is_err(), "a path out of /proc/sys/net");
}

#[test]
fn what_cannot_be_written_is_not_recorded() {
    let mut undo = Undo::load(PathBuf::from("/proc/no-such-directory/undo.json")).unwrap();
    let error = undo.record(setting("0")).unwrap_err().to_string();
    assert!(
        error.contains("/proc/no-such-directory/undo.json"),
        "{error}"
    );
    assert_eq!(undo.steps(), []);
}

proptest! {
    #[test]
    fn any_text_is_an_answer(text in "\\PC{0,200}") {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("undo.json");
        fs::write(&path, text).unwrap();
        prop_assert!(Undo::load(&path).is_err());
    }
}
