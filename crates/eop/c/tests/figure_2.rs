//! Compiles the C programs of figure 2 against the header and the library, and runs them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

struct Programs {
    directory: TempDir,
    library: PathBuf,
}

static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = TempDir::new().unwrap();
    let library = library();
    // These names are those of an installation: linkers look for the first, programs for the second.
    for name in ["libeop.so", "libeop.so.0"] {
        std::os::unix::fs::symlink(&library, directory.path().join(name)).unwrap();
    }
    for name in ["server", "client", "arguments"] {
        let output = Command::new(std::env::var("CLANG").unwrap_or_else(|_| "clang".into()))
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"])
            .arg("-I")
            .arg(root.join("include"))
            .arg(root.join(format!("tests/c/{name}.c")))
            .arg("-o")
            .arg(directory.path().join(name))
            .arg("-L")
            .arg(directory.path())
            .arg("-leop")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    Programs { directory, library }
});

/// The library that `BATON_LIBEOP` names, or one that is built here.
fn library() -> PathBuf {
    if let Some(built) = std::env::var_os("BATON_LIBEOP") {
        return built.into();
    }
    let messages = escargot::CargoBuild::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .exec()
        .unwrap();
    for message in messages {
        if let escargot::format::Message::CompilerArtifact(artifact) =
            message.unwrap().decode().unwrap()
            && let Some(file) = artifact
                .filenames
                .iter()
                .find(|file| file.file_name().is_some_and(|name| name == "libeop.so"))
        {
            return file.to_path_buf();
        }
    }
    panic!("cargo built no libeop.so");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn program(name: &str) -> Command {
    let mut command = Command::new(PROGRAMS.directory.path().join(name));
    command.env("LD_LIBRARY_PATH", PROGRAMS.directory.path());
    command
}

struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start(name: &str, when: &str, target: &str) -> Self {
        let mut child = program("server")
            .args([name, when, target])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut port).unwrap();
        Self {
            child,
            port: port.trim().to_owned(),
        }
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Ends the server even if its test has failed.
impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(arguments: &[&str]) -> Output {
    program("client").args(arguments).output().unwrap()
}

#[test]
fn early_redirect() {
    let second = Server::start("second ", "never", "0");
    let first = Server::start("first ", "early", &second.port);
    let output = client(&[&first.port, "one", "two"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let answers: Vec<&str> = said.lines().filter(|line| *line != "EREDO").collect();
    assert_eq!(answers, ["second one", "second two"]);
    // There is one EREDO, because the client never receives before it has sent.
    assert_eq!(said.matches("EREDO").count(), 1, "{said}");
    first.end();
    second.end();
}

#[test]
fn late_redirect() {
    let second = Server::start("second ", "never", "0");
    let first = Server::start("first ", "late", &second.port);
    let output = client(&[&first.port, "one", "two", "three"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "first one\nsecond two\nsecond three\n"
    );
    first.end();
    second.end();
}

#[test]
fn no_redirect() {
    let only = Server::start("only ", "never", "0");
    let output = client(&[&only.port, "one"]);
    assert_eq!(text(&output.stdout), "only one\n");
    only.end();
}

#[test]
fn wrong_arguments_are_errors() {
    let output = program("arguments").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn the_library_exports_what_the_header_declares_and_nothing_else() {
    let header = include_str!("../include/eop.h");
    let mut declared: Vec<&str> = header
        .split(['*', ' ', '\n'])
        .filter_map(|word| word.split_once('(').map(|(name, _)| name))
        .filter(|name| name.starts_with("eop_") && !header.contains(&format!(" {name}()")))
        .collect();
    declared.extend(["eop_more", "eop_ended", "eop_close"]);
    declared.sort_unstable();
    declared.dedup();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(&PROGRAMS.library)
        .output()
        .unwrap();
    let symbols = text(&output.stdout);
    let mut exported: Vec<&str> = symbols
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    exported.sort_unstable();
    assert_eq!(exported, declared);
}
