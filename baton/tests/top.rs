//! `baton top` as a whole: the real binary in a terminal, and a node that says always the same.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod pty;

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixListener},
    path::PathBuf,
    process::Command,
    thread,
};

use nix::sys::signal::{Signal, kill};
use pty::Pty;
use serde_json::json;
use tempfile::TempDir;

#[test]
fn a_key_ends_it() {
    let node = Node::start();
    let pty = Pty::start(&mut node.top());
    pty.wait_for("cs1 (cs) on eth0");
    pty.wait_for("never-mind");
    assert!(pty.is_changed(), "keys would be echoed");
    pty.press("\t\t");
    pty.wait_for("cs_forward");
    pty.press("q");
    let (status, said) = pty.ended();
    assert!(status.success(), "{said:?}");
}

#[test]
fn a_signal_ends_it() {
    use std::os::unix::process::ExitStatusExt as _;
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let node = Node::start();
        let pty = Pty::start(&mut node.top());
        pty.wait_for("cs1 (cs) on eth0");
        kill(pty.pid(), signal).unwrap();
        let (status, said) = pty.ended();
        assert_eq!(status.signal(), Some(signal as i32), "{said:?}");
    }
}

/// The node ends while it is watched: that is said, and the view stays.
#[test]
fn the_node_is_gone() {
    let node = Node::start();
    let pty = Pty::start(&mut node.top());
    pty.wait_for("cs1 (cs) on eth0");
    fs::remove_file(node.socket()).unwrap();
    pty.wait_for("no node answers at");
    pty.press("q");
    assert!(pty.ended().0.success());
}

#[test]
fn no_node_is_one_clear_line() {
    let node = Node::start();
    fs::remove_file(node.socket()).unwrap();
    let pty = Pty::start(&mut node.top());
    pty.wait_for("running?");
    let (status, said) = pty.ended_untouched();
    assert!(!status.success());
    assert!(said.contains("baton node --config"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said:?}");
}

#[test]
fn without_a_terminal_it_names_status() {
    let node = Node::start();
    let output = node.top().output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("baton status") && said.lines().count() == 1,
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

/// What answers at a control socket.
struct Node {
    directory: TempDir,
}

impl Node {
    fn start() -> Self {
        let node = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        let run_dir = node.directory.path().display();
        let config = format!(
            r#"
[cluster]
key = "{}"
[local]
name = "cs1"
run_dir = "{run_dir}"
[[node]]
name = "cs1"
address = "192.0.2.2"
roles = ["cs"]
[[node]]
name = "never-mind"
address = "192.0.2.11"
roles = ["ds"]
[[service]]
name = "web"
address = "192.0.2.100"
port = 80
"#,
            "0123456789abcdef".repeat(4)
        );
        fs::write(node.config(), config).unwrap();
        fs::set_permissions(node.config(), fs::Permissions::from_mode(0o600)).unwrap();
        let listener = UnixListener::bind(node.socket()).unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                assert_eq!(line, "\"status\"\n");
                writeln!(stream, "{}", answer()).unwrap();
            }
        });
        node
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("baton.toml")
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("control.sock")
    }

    fn top(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command
            .args(["top", "--interval", "0.1", "--config"])
            .arg(self.config())
            .env("TERM", "xterm");
        command
    }
}

fn answer() -> serde_json::Value {
    json!({ "status": {
        "node": "cs1", "roles": ["cs"], "interface": "eth0", "xdp": "native", "uptime": 7,
        "nodes": [{
            "name": "never-mind", "address": "192.0.2.11", "roles": ["ds"], "state": "alive",
            "reachable": true, "adoptions": 1, "flows": 2, "cpu": 3, "clock_skew_ms": 0,
        }],
        "services": [],
        "flows": { "live": 1, "capacity": 2, "expired": 0 },
        "counters": { "cs_forward": 5 },
    }})
}
