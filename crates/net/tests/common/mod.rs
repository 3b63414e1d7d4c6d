//! Network namespaces for tests. They are named after this process, and are removed at the end of the test that made
//! them, whatever its outcome.
#![allow(dead_code, reason = "each test uses its part")]

use std::io::Read;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use baton_net::netns;
use tokio::sync::oneshot;

/// Whether the test may make namespaces. If not, the reason is printed.
pub fn may_run(test: &str) -> bool {
    if nix::unistd::geteuid().is_root() {
        return true;
    }
    eprintln!("{test}: skipped: needs root to make network namespaces");
    false
}

/// Whether the test that runs on this thread may make namespaces. If not, the reason is printed.
pub fn may_run_here() -> bool {
    may_run(thread::current().name().unwrap_or("a test"))
}

/// A network namespace whose loopback interface is up.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    pub fn new(tag: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("baton-test-{}-{number}-{tag}", std::process::id());
        ip(&["netns", "add", &name]);
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    /// Runs `ip` within the namespace.
    pub fn ip(&self, arguments: &str) -> String {
        let mut all = vec!["-n", &self.name];
        all.extend(arguments.split(' '));
        ip(&all)
    }

    /// Runs a program within the namespace, and returns its output.
    pub fn exec(&self, program: &str, arguments: &[&str]) -> String {
        let mut all = vec!["netns", "exec", &self.name, program];
        all.extend(arguments);
        ip(&all)
    }

    /// Runs a program within the namespace, with a file of this content as its last argument.
    pub fn feed(&self, program: &str, arguments: &[&str], content: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let mut all = arguments.to_vec();
        all.push(file.path().to_str().unwrap());
        self.exec(program, &all);
    }

    /// Runs `work` in the namespace, on a thread of its own.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        netns::run(&self.name, work).unwrap()
    }

    /// Runs the future that `work` makes in the namespace, until it is ready.
    pub fn block_on<F: Future>(&self, work: impl FnOnce() -> F + Send) -> F::Output
    where
        F::Output: Send,
    {
        self.run(|| runtime().block_on(async { work().await }))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let done = Command::new("ip")
            .args(["netns", "del", &self.name])
            .status();
        if !done.is_ok_and(|status| status.success()) {
            eprintln!("could not remove the network namespace {}", self.name);
        }
    }
}

/// Two namespaces on one LAN. Their interfaces `eth0` have the addresses 10.88.0.1/24 and 10.88.0.2/24.
pub struct Lan {
    pub client: Namespace,
    pub server: Namespace,
}

impl Lan {
    pub fn new() -> Self {
        let lan = Self {
            client: Namespace::new("client"),
            server: Namespace::new("server"),
        };
        let peer = format!(
            "link add eth0 type veth peer name eth0 netns {}",
            lan.server.name
        );
        lan.client.ip(&peer);
        for (namespace, address) in [(&lan.client, "10.88.0.1"), (&lan.server, "10.88.0.2")] {
            namespace.ip(&format!("address add {address}/24 dev eth0"));
            namespace.ip("link set eth0 up");
        }
        lan
    }
}

/// A runtime that stays on the thread on which it was made, and therefore in its namespace.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A runtime in a network namespace, on a thread of its own. It runs until it is told to stop.
pub struct Thread<T> {
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<T>,
}

impl<T: Send + 'static> Thread<T> {
    pub fn start<F: Future<Output = T>>(
        namespace: &Namespace,
        work: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let name = namespace.name.clone();
        let work = move || runtime().block_on(async { work(stopped).await });
        let thread = thread::spawn(move || netns::run(&name, work).unwrap());
        Self { stop, thread }
    }

    pub fn stop(self) -> thread::Result<T> {
        drop(self.stop);
        self.thread.join()
    }
}

/// Reads up to the next line feed, and no further.
pub fn line(from: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while from.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn ip(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "ip {}: {error}",
        arguments.join(" ")
    );
    String::from_utf8(output.stdout).unwrap()
}
