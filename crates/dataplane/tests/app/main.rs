//! What the hooks of virtual sockets do to each system call: a table. A program in the hooks' control group does each
//! row on a real socket, in a network namespace of its own. There is no agent; this test tells the hooks what an
//! agent would. Needs root, and control groups of version 2.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use baton_dataplane::{
    App, AppCall, AppEvent, AppMaps, AppOptions, AppTaken, app_counter_name, control_groups, mounts,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// The port of an agent that does not exist.
const AGENT: u16 = 9999;

/// The hooks on a control group, and a program that does what it is told, inside the group and outside.
struct Bed {
    app: App,
    maps: AppMaps,
    group: PathBuf,
    program: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Bed {
    /// Returns `None` where the test may not run.
    fn new(test: &str) -> Option<Self> {
        if !nix::unistd::geteuid().is_root() {
            eprintln!("{test}: skipped: needs root for control groups and namespaces");
            return None;
        }
        let mounts = mounts();
        let root = PathBuf::from(control_groups(&mounts).expect("no control groups of version 2"));
        let group = root.join(format!("baton-test-app-{}-{test}", std::process::id()));
        fs::create_dir(&group).unwrap();
        let mut app = App::load(None).unwrap();
        let maps = app.maps().unwrap();
        let addresses = ["10.9.9.9", "fd09::9"].map(|address| address.parse().unwrap());
        maps.set_cluster(&addresses).unwrap();
        maps.set_direct(&[("10.8.8.0".parse().unwrap(), 24)])
            .unwrap();
        app.attach(&group, None).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/app/calls.py");
        let set_up =
            "ip link set lo up && ip address add 10.8.8.8/32 dev lo && exec python3 -u \"$@\"";
        let mut program = Command::new("unshare")
            .args(["--net", "sh", "-c", set_up, "sh"])
            .args([&script, &group])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = program.stdin.take().unwrap();
        let output = BufReader::new(program.stdout.take().unwrap()).lines();
        Some(Self {
            app,
            maps,
            group,
            program,
            input,
            output,
        })
    }

    /// Sends a row to the program, and returns what the program says.
    fn told(&mut self, row: &str) -> String {
        writeln!(self.input, "{row}").unwrap();
        self.output.next().unwrap().unwrap()
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let all = self.maps.counters().unwrap();
        let named = (0..).zip(all);
        named
            .filter_map(|(index, value)| Some((app_counter_name(index)?, value)))
            .collect()
    }

    /// Does each row, and checks what the program says and which counters move.
    fn each(&mut self, rows: &[(&str, &str, &[&str])]) {
        for (row, says, counts) in rows {
            let before = self.counters();
            assert_eq!(self.told(row), *says, "{row}");
            let after = self.counters();
            let moved: Vec<&str> = (before.iter().zip(&after))
                .filter(|(before, after)| before.1 != after.1)
                .map(|(before, _)| before.0.as_str())
                .collect();
            assert_eq!(moved, *counts, "{row}");
        }
    }

    fn event(&self, wanted: impl Fn(&AppEvent) -> bool) -> AppEvent {
        let events = self.app.events().unwrap();
        let begun = Instant::now();
        loop {
            let found = events.wait(Duration::from_millis(100)).unwrap();
            if let Some(event) = found.into_iter().find(&wanted) {
                return event;
            }
            assert!(begun.elapsed() < PATIENCE, "no such event");
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = fs::write(self.group.join("cgroup.kill"), "1");
        let _ = self.program.kill();
        let _ = self.program.wait();
        self.app.release();
        let begun = Instant::now();
        // A process that is ending belongs to the group until it has ended.
        while fs::remove_dir(&self.group).is_err() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn bind() {
    let Some(mut bed) = Bed::new("bind") else {
        return;
    };
    bed.each(&[
        // Row, what getsockname() says, which hooks acted.
        ("bind tcp 0.0.0.0 5000", "0.0.0.0 5000", &["app_bind"]),
        ("bind tcp 10.9.9.9 5000", "10.9.9.9 5000", &["app_bind"]),
        (
            "bind tcp 127.0.0.1 5000",
            "127.0.0.1 5000",
            &["app_bind_direct"],
        ),
        (
            "bind tcp 10.8.8.8 5000",
            "10.8.8.8 5000",
            &["app_bind_direct"],
        ),
        (
            "bind tcp 10.7.7.7 5000",
            "EADDRNOTAVAIL",
            &["app_bind_direct"],
        ),
        ("bind tcp :: 5000", ":: 5000", &["app_bind"]),
        (
            "bind tcp ::ffff:0.0.0.0 5000",
            "::ffff:0.0.0.0 5000",
            &["app_bind"],
        ),
        ("bind tcp fd09::9 5000", "fd09::9 5000", &["app_bind"]),
        ("bind tcp ::1 5000", "::1 5000", &["app_bind_direct"]),
        ("bind tcp :: 5000 only", ":: 5000", &["app_bind"]),
        ("bind udp 0.0.0.0 5000", "0.0.0.0 5000", &[]),
        ("bind udp 10.9.9.9 5000", "EADDRNOTAVAIL", &[]),
        ("outside bind tcp 0.0.0.0 5000", "0.0.0.0 5000", &[]),
        ("outside bind tcp 10.9.9.9 5000", "EADDRNOTAVAIL", &[]),
    ]);
    // A port that the kernel chose is known by its number.
    let said = bed.told("bind tcp 0.0.0.0 0");
    let (address, port) = said.split_once(' ').unwrap();
    assert!(address == "0.0.0.0" && port != "0", "{said}");
}

#[test]
fn bind_to_a_port_that_is_taken() {
    let Some(mut bed) = Bed::new("taken") else {
        return;
    };
    let taken = |port, v4, v6| AppTaken { port, v4, v6 };
    bed.maps
        .set_taken(&[taken(1, true, true), taken(5004, true, false)])
        .unwrap();
    bed.maps
        .set_taken(&[taken(5004, true, false), taken(5006, false, true)])
        .unwrap();
    let (refused, is): (_, &[&str]) = ("EADDRINUSE", &["app_bind_taken"]);
    bed.each(&[
        ("bind tcp 0.0.0.0 5004", refused, is),
        ("bind tcp 10.9.9.9 5004", refused, is),
        ("bind tcp :: 5004", refused, is),
        ("bind tcp ::ffff:0.0.0.0 5004", refused, is),
        ("bind tcp :: 5004 only", ":: 5004", &["app_bind"]),
        ("bind tcp fd09::9 5004", "fd09::9 5004", &["app_bind"]),
        (
            "bind tcp 127.0.0.1 5004",
            "127.0.0.1 5004",
            &["app_bind_direct"],
        ),
        ("bind udp 0.0.0.0 5004", "0.0.0.0 5004", &[]),
        ("outside bind tcp 0.0.0.0 5004", "0.0.0.0 5004", &[]),
        ("bind tcp 0.0.0.0 5006", "0.0.0.0 5006", &["app_bind"]),
        ("bind tcp :: 5006", refused, is),
        ("bind tcp :: 5006 only", refused, is),
        ("bind tcp fd09::9 5006", refused, is),
        ("bind tcp 0.0.0.0 1", "0.0.0.0 1", &["app_bind"]),
    ]);
    let event = bed.event(|event| matches!(event, AppEvent::BindTaken { .. }));
    let wanted = "0.0.0.0:5004".parse().unwrap();
    assert_eq!(event, AppEvent::BindTaken { wanted });
    bed.maps.set_taken(&[]).unwrap();
    bed.each(&[("bind tcp :: 5004", ":: 5004", &["app_bind"])]);
}

#[test]
fn connect() {
    let Some(mut bed) = Bed::new("connect") else {
        return;
    };
    // No agent has given a sign.
    bed.each(&[
        (
            "connect tcp 192.0.2.1 80",
            "ENETUNREACH",
            &["app_connect_no_agent"],
        ),
        (
            "connect tcp 2001:db8::1 80",
            "ENETUNREACH",
            &["app_connect_no_agent"],
        ),
        (
            "connect tcp 127.0.0.1 80",
            "ECONNREFUSED",
            &["app_connect_direct"],
        ),
        (
            "connect tcp 10.8.8.8 80",
            "ECONNREFUSED",
            &["app_connect_direct"],
        ),
        ("connect udp 10.8.8.8 80", "10.8.8.8 80", &[]),
        ("outside connect tcp 192.0.2.1 80", "ENETUNREACH", &[]),
    ]);
    // A kernel without MPTCP refuses before the hooks are asked.
    if Path::new("/proc/sys/net/mptcp").exists() {
        bed.each(&[("mptcp", "EPROTONOSUPPORT", &["app_no_mptcp"])]);
    }
    bed.maps
        .give_sign(AGENT, Duration::from_secs(3600))
        .unwrap();
    let calls: &[&str] = &["app_connect", "app_syn_held", "app_call_ended"];
    bed.each(&[
        // The call waits until it is closed.
        ("call 192.0.2.1 80", "EINPROGRESS", calls),
        ("call ::ffff:192.0.2.1 80", "EINPROGRESS", calls),
        ("call 2001:db8::1 80", "EINPROGRESS", calls),
        (
            "connect tcp 127.0.0.1 80",
            "ECONNREFUSED",
            &["app_connect_direct"],
        ),
    ]);
    bed.told("alive and call 192.0.2.7 80");
    let event = bed.event(
        |event| matches!(event, AppEvent::Call(call) if call.wanted.to_string() == "192.0.2.7:80"),
    );
    let AppEvent::Call(AppCall { at, options, .. }) = event else {
        panic!("{event:?}");
    };
    assert!(at.ip().is_loopback(), "{at}");
    let expected = AppOptions {
        keepalive: Some(true),
        keep_idle: Some(70),
        ..AppOptions::default()
    };
    assert_eq!(options, expected);
}

#[test]
fn listeners_and_their_options() {
    let Some(mut bed) = Bed::new("listen") else {
        return;
    };
    for (row, at, wanted) in [
        ("listen tcp 0.0.0.0 5000", "127.0.0.1:5000", "0.0.0.0:5000"),
        (
            "listen tcp 10.9.9.9 5001",
            "127.0.0.1:5001",
            "10.9.9.9:5001",
        ),
        ("listen tcp :: 5002", "127.0.0.1:5002", "[::]:5002"),
        ("listen tcp :: 5003 only", "[::1]:5003", "[::]:5003"),
        ("listen tcp fd09::9 5004", "[::1]:5004", "[fd09::9]:5004"),
        // In the first of these rows a child of the program listens, in the second the program that a child became.
        ("forked tcp 0.0.0.0 5005", "127.0.0.1:5005", "0.0.0.0:5005"),
        (
            "executed tcp 0.0.0.0 5006",
            "127.0.0.1:5006",
            "0.0.0.0:5006",
        ),
    ] {
        assert_eq!(bed.told(row), "listens", "{row}");
        let found = bed.maps.listeners().unwrap();
        let [found] = &found[..] else {
            panic!("{row}: {found:?}");
        };
        assert_eq!(found.at.to_string(), at, "{row}");
        assert_eq!(found.wanted.to_string(), wanted, "{row}");
        assert_eq!(found.options, AppOptions::default(), "{row}");
        // Whichever descriptor an option is set by, it is the socket's: also a duplicate, and one that was passed to
        // a process outside the group.
        for (step, idle) in [("alive", 70), ("duplicate alive", 71), ("passed alive", 72)] {
            assert_eq!(bed.told(step), "set", "{row}");
            let options = bed.maps.listeners().unwrap()[0].options;
            let expected = AppOptions {
                keepalive: Some(true),
                keep_idle: Some(idle),
                ..AppOptions::default()
            };
            assert_eq!(options, expected, "{row}: {step}");
        }
        let wanted = wanted.replace(['[', ']'], "");
        let (address, port) = wanted.rsplit_once(':').unwrap();
        assert_eq!(
            bed.told("passed name"),
            format!("{address} {port}"),
            "{row}"
        );
        // The socket listens until its last descriptor is closed, also by SIGKILL.
        assert_eq!(bed.told("kill"), "killed", "{row}");
        assert_eq!(bed.maps.listeners().unwrap().len(), 1, "{row}");
        assert_eq!(bed.told("close"), "closed", "{row}");
        assert_eq!(bed.maps.listeners().unwrap(), [], "{row}");
    }
    // Listeners on loopback and on outside addresses are not listed.
    for row in ["listen tcp 127.0.0.1 5000", "listen tcp 10.8.8.8 5000"] {
        assert_eq!(bed.told(row), "listens");
        assert_eq!(bed.maps.listeners().unwrap(), [], "{row}");
        assert_eq!(bed.told("kill"), "killed");
        assert_eq!(bed.told("close"), "closed");
    }
}
