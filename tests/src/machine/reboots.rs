//! Checks in which every machine is started again in turn, while clients go on.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use toml::{Table, Value};

use super::client::Report;
use super::cluster::{CONFIG, CONNECTION_SERVERS, Cluster, DATA_SERVERS};

/// The port of the service that has no `resume`.
pub(super) const PLAIN_PORT: u16 = 8080;

/// How a machine ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// `systemctl reboot`: systemd stops the unit, which drains or hands over.
    Reboot,
    /// Its power fails and comes back.
    Reset,
}

/// Checks that nothing fails if a machine ends by `systemctl reboot`.
pub(super) fn in_order(cluster: &mut Cluster, on: &str) -> Result<()> {
    configure(cluster)?;
    under_load(cluster, on, End::Reboot)
}

/// Checks that responses under way at a data server are resumed if its power fails.
pub(super) fn by_force(cluster: &mut Cluster, on: &str) -> Result<()> {
    configure(cluster)?;
    under_load(cluster, on, End::Reset)
}

/// Checks that, if the power of the connection server in front fails, the other one takes its connections over.
pub(super) fn front_by_force(cluster: &mut Cluster) -> Result<()> {
    configure(cluster)?;
    let front = cluster.front()?;
    under_load(cluster, front, End::Reset)
}

/// Configures the cluster so that any data server may answer any request, connections move with each request, and
/// responses are resumed; no pool depends on one data server. There is a route nevertheless, so a connection server
/// that has taken a connection over asks the connection's owner where the next request begins. The second service,
/// [`PLAIN_PORT`], resumes nothing, and its connections stay where they are as long as they can.
pub(super) fn configure(cluster: &mut Cluster) -> Result<()> {
    let file = cluster.run("cs1", "cat /etc/baton/baton.toml")?;
    if file.contains("every-request") {
        return cluster.wait_until_served();
    }
    let mut config: Table = CONFIG.parse()?;
    let services = config.get_mut("service").and_then(Value::as_array_mut);
    let service = services.and_then(|all| all.first_mut()?.as_table_mut());
    let service = service.context("the configuration has no service")?;
    service.remove("pool");
    service.remove("route");
    let mut plain = service.clone();
    plain.insert("name".into(), "plain".into());
    plain.insert("port".into(), i64::from(PLAIN_PORT).into());
    let everybody = toml::toml! {
        name = "everybody"
        nodes = ["ds1", "ds2"]
    };
    let everything = toml::toml! {
        path = "/"
        pool = "everybody"
    };
    service.insert("pool".into(), vec![everybody].into());
    service.insert("route".into(), vec![everything].into());
    service.insert("handover".into(), "every-request".into());
    service.insert("resume".into(), true.into());
    let all = config.get_mut("service").and_then(Value::as_array_mut);
    (all.context("the configuration has no services")?).push(plain.into());
    let text = toml::to_string(&config)?;
    for on in CONNECTION_SERVERS.iter().chain(&DATA_SERVERS) {
        let guest = cluster.guest(on)?;
        guest.write("/etc/baton/baton.toml", &text)?;
        guest.run("sync; systemctl reload baton")?;
    }
    cluster.wait_until_served()
}

fn under_load(cluster: &mut Cluster, on: &str, end: End) -> Result<()> {
    let begun = Instant::now();
    begin(cluster)?;
    let up = start_again(cluster, on, end)?;
    let report = finish(cluster).with_context(|| format!("{end:?} of {on}"))?;
    eprintln!(
        "machines: {end:?} of {on}: up after {up:.0?}, serves after {:.0?}; {} requests right, {} failed, {} connections, \
         the longest took {} ms",
        begun.elapsed(),
        report.right,
        report.failed.len(),
        report.connections,
        report.longest_ms,
    );
    ensure!(
        report.failed.is_empty(),
        "{end:?} of {on}: {} requests failed: {:#?}",
        report.failed.len(),
        report.failed
    );
    Ok(())
}

/// Ends a machine, and waits until it is back and serves. Returns how long the machine took to come up.
pub(super) fn start_again(cluster: &mut Cluster, on: &str, end: End) -> Result<Duration> {
    let begun = Instant::now();
    let guest = cluster.guest(on)?;
    match end {
        End::Reboot => drop(guest.run("(sleep 1; systemctl reboot) >/dev/null 2>&1 &")?),
        End::Reset => guest.reset()?,
    }
    guest.wait_for_boot()?;
    let up = begun.elapsed();
    cluster.wait_until_served()?;
    if DATA_SERVERS.contains(&on) {
        cluster.wait(|cluster| {
            let server = cluster.run("client", "curl -sS -m 60 http://10.77.0.100/whoami")?;
            ensure!(server.trim() == on, "{on} serves nobody");
            Ok(())
        })?;
    }
    Ok(up)
}

/// Starts clients: short requests over connections that stay open, and slow downloads.
fn begin(cluster: &mut Cluster) -> Result<()> {
    cluster
        .run(
            "client",
            "rm -f /run/stop /run/page.* /run/download.*; systemctl reset-failed 'load*' 2>/dev/null
             systemd-run -q --unit=load -p StandardOutput=truncate:/run/report -p StandardError=truncate:/run/report.errors \
                 /machine/client /4k,/64k,/4k 4 200ms /run/stop
             for number in 1 2; do
                 systemd-run -q --unit=load$number -p StandardOutput=truncate:/run/download.$number -p StandardError=inherit \
                     curl -sS --fail --limit-rate 150k -o /run/page.$number http://10.77.0.100/16m
             done
             sleep 4",
        )
        .map(drop)
}

/// Waits for the downloads, compares them with the file, and returns the report of the other client.
fn finish(cluster: &mut Cluster) -> Result<Report> {
    let client = cluster.guest("client")?;
    for number in 1..=2 {
        client.run(&format!(
            "for second in $(seq 100); do systemctl -q is-active load{number} || break; sleep 1; done
             cat /run/download.{number}; cmp /run/page.{number} /srv/www/16m"
        ))?;
    }
    let report = client.run(
        "touch /run/stop; for second in $(seq 100); do systemctl -q is-active load || break; sleep 1; done
         cat /run/report.errors >&2; cat /run/report",
    )?;
    serde_json::from_str(&report).with_context(|| format!("the client reports {report:?}"))
}
