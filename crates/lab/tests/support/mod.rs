//! Helpers for the tests that raise a lab.

use std::path::Path;
use std::process::Output;

use baton_lab::{Error, Lab, Options, Running};

/// The result of a test. Any error fails it.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A running lab. When this is dropped, the lab is taken down, and the test fails if anything of the lab is left.
pub struct Raised {
    pub running: Running,
    pub name: String,
}

/// The name and the text of a lab file with these hosts. The name contains the process id, so that tests and other labs
/// do not collide.
pub fn file(test: &str, hosts: &str) -> (String, String) {
    let name = format!("t{}-{test}", std::process::id());
    (name.clone(), format!("name = \"{name}\"\n{hosts}"))
}

/// Raises a lab. If this machine cannot, prints why and returns `None`.
pub fn raise(test: &str, hosts: &str) -> Result<Option<Raised>, Box<dyn std::error::Error>> {
    let (name, text) = file(test, hosts);
    let lab = Lab::parse(&text)?;
    if skipped(test, &lab) {
        return Ok(None);
    }
    let running = lab.up(&Options::new("/nonexistent"), |_| {})?;
    Ok(Some(Raised { running, name }))
}

/// Whether the test cannot run on this machine. If so, prints why.
pub fn skipped(test: &str, lab: &Lab) -> bool {
    let mut reasons: Vec<String> = lab.can_run().err().iter().map(Error::to_string).collect();
    if std::process::Command::new("curl")
        .arg("--version")
        .output()
        .is_err()
    {
        reasons.push("curl is not installed: apt-get install curl".to_owned());
    }
    for reason in &reasons {
        eprintln!("SKIPPED {test}: {reason}");
    }
    !reasons.is_empty()
}

impl Raised {
    /// Runs a command on a host. `line` is split at white space; there is no quoting.
    pub fn on(&self, host: &str, line: &str) -> Result<Output, Box<dyn std::error::Error>> {
        Ok(self
            .running
            .exec(host)?
            .args(line.split_whitespace())
            .output()?)
    }

    /// Runs such a command and returns its standard output. It is an error if the command fails.
    pub fn text(&self, host: &str, line: &str) -> Result<String, Box<dyn std::error::Error>> {
        let output = self.on(host, line)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{line} on {host}: {}: {stderr}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs curl on the client with these arguments, a URL and perhaps options, and returns what it prints.
    pub fn get(&self, arguments: &str) -> Result<String, Box<dyn std::error::Error>> {
        self.text("client", &format!("curl -sSf --max-time 60 {arguments}"))
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        if Running::open(&self.name).is_ok() {
            let _ = self.running.clone().down();
        }
        if !std::thread::panicking() {
            assert_eq!(left_behind(&self.name), Vec::<String>::new());
        }
    }
}

/// What still exists of a lab: its paths, its namespaces and the command lines of its processes.
pub fn left_behind(lab: &str) -> Vec<String> {
    let mut left = Vec::new();
    for place in [
        "/run/baton-lab",
        "/sys/fs/cgroup/baton-lab",
        "/sys/fs/cgroup/cpu/baton-lab",
        "/sys/fs/cgroup/unified/baton-lab",
        "/sys/fs/bpf/baton-lab",
    ] {
        let path = Path::new(place).join(lab);
        if path.exists() {
            left.push(path.display().to_string());
        }
    }
    for entry in std::fs::read_dir("/run/netns")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!("baton-{lab}-")) {
            left.push(name);
        }
    }
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        if words.contains(&format!("/run/baton-lab/{lab}/")) {
            left.push(words);
        }
    }
    left
}
