//! Checks in which all machines are started again, one after the other, under one continuous load.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::client::Report;
use super::cluster::{CONNECTION_SERVERS, Cluster, DATA_SERVERS};
use super::reboots::{End, PLAIN_PORT, configure, start_again};

/// How many downloads run at once at each service.
const DOWNLOADS: usize = 2;

/// A client whose data server was restarted learns, at the latest so many seconds after that server is back, that its
/// connection is gone.
const LATE: f64 = 30.0;

/// When a data server was away, in seconds of the client's clock.
struct Away {
    server: &'static str,
    from: f64,
    to: f64,
}

/// A connection that ended before its answer was whole.
struct Ended {
    what: String,
    /// The data server that had the connection. `None` if the client had received no answer over it.
    server: Option<String>,
    at: f64,
    /// The failure was not an early end: the bytes differ from those of the page, which no restart explains.
    wrong: bool,
}

/// A download, as `machine/downloads` prints it.
struct Download {
    at: f64,
    /// The exit status of curl.
    status: u32,
    server: Option<String>,
    right: bool,
}

/// Restarts every machine in turn by `systemctl reboot`.
pub(super) fn in_order(cluster: &mut Cluster) -> Result<()> {
    all(cluster, End::Reboot)
}

/// Restarts every machine in turn by a power failure.
pub(super) fn by_force(cluster: &mut Cluster) -> Result<()> {
    all(cluster, End::Reset)
}

/// Restarts each machine once the one before is back. With `resume` no connection may end; without it, only
/// connections of a data server that is away may.
fn all(cluster: &mut Cluster, end: End) -> Result<()> {
    configure(cluster)?;
    let begun = begin(cluster)?;
    let mut away = Vec::new();
    for on in CONNECTION_SERVERS.into_iter().chain(DATA_SERVERS) {
        let from = now(cluster)?;
        let up = start_again(cluster, on, end).with_context(|| format!("{end:?} of {on}"))?;
        let to = now(cluster)?;
        eprintln!(
            "machines: {end:?} of {on}: up after {up:.0?}, serves after {:.0} s",
            to - from
        );
        if DATA_SERVERS.contains(&on) {
            away.push(Away {
                server: on,
                from,
                to: to + LATE,
            });
        }
    }
    cluster.run("client", "touch /run/stop")?;
    let resumed = finish(cluster, "resumed", begun)?;
    let plain = finish(cluster, "plain", begun)?;
    let (explained, foreign): (Vec<Ended>, Vec<Ended>) =
        (plain.into_iter()).partition(|ended| away.iter().any(|away| away.explains(ended)));
    let mut by_server: BTreeMap<&str, usize> = BTreeMap::new();
    for ended in &explained {
        let server = ended.server.as_deref().unwrap_or("nobody yet");
        *by_server.entry(server).or_default() += 1;
    }
    eprintln!("machines: without `resume`, connections ended, by data server: {by_server:?}");
    ensure!(
        resumed.is_empty() && foreign.is_empty(),
        "with `resume`, {} connections ended: {}\nwithout it, {} ended that were of no data server that was away then: {}",
        resumed.len(),
        list(&resumed, begun),
        foreign.len(),
        list(&foreign, begun)
    );
    Ok(())
}

impl Away {
    fn explains(&self, ended: &Ended) -> bool {
        let is_its = !ended.wrong && ended.server.as_deref().is_none_or(|of| of == self.server);
        is_its && (self.from..=self.to).contains(&ended.at)
    }
}

fn list(ended: &[Ended], begun: f64) -> String {
    let line = |one: &Ended| {
        let server = one.server.as_deref().unwrap_or("nobody yet");
        format!("\nafter {:.0} s, of {server}: {}", one.at - begun, one.what)
    };
    ended.iter().map(line).collect()
}

/// The time by the client's clock, in seconds.
fn now(cluster: &mut Cluster) -> Result<f64> {
    let text = cluster.run("client", "date +%s.%N")?;
    (text.trim().parse()).with_context(|| format!("the client's clock shows {text:?}"))
}

/// Starts clients of both services: short requests over connections that stay open, and slow downloads. Returns the
/// client's time at the start.
fn begin(cluster: &mut Cluster) -> Result<f64> {
    cluster.run(
        "client",
        "rm -f /run/stop; systemctl reset-failed 'resumed*' 'plain*' 2>/dev/null; true",
    )?;
    let begun = now(cluster)?;
    for (name, port) in [("resumed", 80), ("plain", PLAIN_PORT)] {
        start(
            cluster,
            name,
            &format!("/machine/client /4k,/64k,/4k 4 500ms /run/stop {port}"),
        )?;
        for number in 1..=DOWNLOADS {
            start(
                cluster,
                &format!("{name}{number}"),
                &format!("/machine/downloads {port} 16m 150k"),
            )?;
        }
    }
    cluster.run("client", "sleep 4")?;
    Ok(begun)
}

/// Starts a unit whose output is kept in a file of the unit's name.
fn start(cluster: &mut Cluster, unit: &str, command: &str) -> Result<()> {
    cluster
        .run(
            "client",
            &format!(
                "systemd-run -q --unit={unit} -p StandardOutput=truncate:/run/{unit}.output \
                 -p StandardError=truncate:/run/{unit}.errors {command}"
            ),
        )
        .map(drop)
}

/// Waits for the clients of a service, and returns the connections and downloads that ended early or were wrong.
fn finish(cluster: &mut Cluster, name: &str, begun: f64) -> Result<Vec<Ended>> {
    let report: Report = {
        let text = output(cluster, name)?;
        serde_json::from_str(&text).with_context(|| format!("the client reports {text:?}"))?
    };
    let mut lost: Vec<Ended> = (report.failed.into_iter())
        .map(|failure| Ended {
            what: failure.what,
            server: failure.server,
            at: begun + failure.at,
            wrong: false,
        })
        .collect();
    let mut downloads = Vec::new();
    for number in 1..=DOWNLOADS {
        let text = output(cluster, &format!("{name}{number}"))?;
        for line in text.lines() {
            let download = Download::parse(line);
            downloads.push(download.with_context(|| format!("a download is {line:?}"))?);
        }
    }
    let whole = downloads.iter().filter(|one| one.is_whole()).count();
    eprintln!(
        "machines: {name}: {} requests right in {:.0} s, {} failed, {} connections, the longest took {} ms; \
         {whole} downloads right, {} ended",
        report.right,
        report.seconds,
        lost.len(),
        report.connections,
        report.longest_ms,
        downloads.len() - whole,
    );
    ensure!(
        report.right > 0 && whole > 0,
        "{name}: nobody was served at all"
    );
    lost.extend(downloads.into_iter().filter_map(Download::ended));
    Ok(lost)
}

/// What a unit has printed, once it has ended. The wait is long because a slow download may be under way.
fn output(cluster: &mut Cluster, unit: &str) -> Result<String> {
    cluster.guest("client")?.run_for(
        &format!("while systemctl -q is-active {unit}; do sleep 1; done; cat /run/{unit}.output"),
        Duration::from_secs(900),
    )
}

impl Download {
    fn parse(line: &str) -> Option<Download> {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, status, server, right] = words[..] else {
            return None;
        };
        Some(Download {
            at: at.parse().ok()?,
            status: status.parse().ok()?,
            server: (server != "nobody").then(|| server.to_owned()),
            right: match right {
                "right" => true,
                "wrong" => false,
                _ => return None,
            },
        })
    }

    fn is_whole(&self) -> bool {
        self.status == 0 && self.right
    }

    fn ended(self) -> Option<Ended> {
        (!self.is_whole()).then(|| Ended {
            what: format!("a download, of which curl says {}", self.status),
            server: self.server,
            at: self.at,
            wrong: self.status == 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(line: &str) -> Option<Ended> {
        Download::parse(line).and_then(Download::ended)
    }

    #[test]
    fn only_a_data_server_that_is_away_explains_an_end() -> Result<()> {
        let away = Away {
            server: "ds1",
            from: 100.0,
            to: 200.0,
        };
        let explained = |line| Some(away.explains(&ended(line)?));
        assert_eq!(explained("150 56 ds1 wrong"), Some(true));
        assert_eq!(explained("150 7 nobody wrong"), Some(true));
        assert_eq!(explained("150 56 ds2 wrong"), Some(false));
        assert_eq!(explained("250 56 ds1 wrong"), Some(false));
        // A download with a whole body whose bytes are wrong is a failure; one whose bytes are right is none.
        assert_eq!(explained("150 0 ds1 wrong"), Some(false));
        assert_eq!(explained("150 0 ds1 right"), None);
        assert!(Download::parse("150 56 ds1").is_none());
        Ok(())
    }
}
