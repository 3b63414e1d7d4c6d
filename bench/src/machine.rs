//! Describes the machine on which was measured: without that, the numbers mean nothing.

use std::process::Command;

use anyhow::{Context as _, Result};

/// The first lines of a report, which describe the machine.
pub(crate) fn describe() -> Result<String> {
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let processors = std::thread::available_parallelism().context("count the processors")?;
    let model = read("/proc/cpuinfo")?
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown".to_owned(), |(_, model)| model.to_owned());
    Ok(format!(
        "Linux {}, {processors} processors ({model})\n\n{}; {}; {}\n\nLoad average before: {}\n",
        kernel.trim(),
        version("nginx", "-v"),
        version("haproxy", "-v"),
        version("wrk", "-v"),
        load_average()?,
    ))
}

/// The last line of a report, with the load average after the run.
pub(crate) fn load_after() -> Result<String> {
    Ok(format!("Load average after: {}\n", load_average()?))
}

/// The load average over 1, 5 and 15 minutes (proc_loadavg(5)).
fn load_average() -> Result<String> {
    let text = read("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// The first line that a program prints about its version. Some programs print it on standard error.
fn version(program: &str, flag: &str) -> String {
    let Ok(output) = Command::new(program).arg(flag).output() else {
        return format!("{program} of unknown version");
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().find(|line| !line.is_empty());
    let line = line.unwrap_or(program);
    line.split(" Copyright").next().unwrap_or(line).to_owned()
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {path}"))
}
