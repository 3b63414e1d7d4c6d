//! Helpers that the tests with namespaces share.

use std::path::Path;
use std::process::Output;

use baton_lab::{Error, Lab, Options, Running};

/// The result of a test. Any error fails it.
pub type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A lab that is taken down at the end of a test, however it ends.
pub struct Raised {
    pub running: Running,
    pub name: String,
}

/// The name and the text of a lab file. The name is unique, so that tests and other labs do not collide.
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

/// Whether the test cannot run here. If so, the reason is printed.
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
    /// Runs a command line (no word holds a space) on a host.
    pub fn on(&self, host: &str, line: &str) -> Result<Output, Box<dyn std::error::Error>> {
        Ok(self
            .running
            .exec(host)?
            .args(line.split_whitespace())
            .output()?)
    }

    /// The output of a command line that must succeed.
    pub fn text(&self, host: &str, line: &str) -> Result<String, Box<dyn std::error::Error>> {
        let output = self.on(host, line)?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{line} on {host}: {}: {stderr}", output.status).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The body that curl on the client gets from `url`.
    pub fn get(&self, url: &str) -> Result<String, Box<dyn std::error::Error>> {
        self.text("client", &format!("curl -sSf --max-time 60 {url}"))
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

/// The paths, namespaces and command lines of a lab that still exist.
pub fn left_behind(lab: &str) -> Vec<String> {
    let mut left = Vec::new();
    for place in [
        "/run/baton-lab",
        "/sys/fs/cgroup/cpu/baton-lab",
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
