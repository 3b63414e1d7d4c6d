//! Starts a machine again, in order or by force, and configures the cluster so that clients notice nothing of it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use toml::{Table, Value};

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
