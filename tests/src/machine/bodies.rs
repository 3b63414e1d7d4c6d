//! Large bodies in both directions, which drivers cut and merge into segments of other sizes.

use anyhow::{Context as _, Result, ensure};

use super::cluster::{Cluster, DATA_SERVERS};

/// Checks that every byte of downloads and uploads arrives unchanged, and that segments on the way were larger than a
/// frame on the wire.
pub(super) fn compared(cluster: &mut Cluster) -> Result<()> {
    watch(cluster, "client", "src port 80")?;
    for server in DATA_SERVERS {
        watch(cluster, server, "dst port 80")?;
        for page in ["1m", "16m"] {
            cluster.run(
                "client",
                &format!(
                    "curl -sS -m 110 --fail -o /run/body http://10.77.0.100/{server}/{page} && cmp /run/body /srv/www/{page}"
                ),
            )?;
        }
        for _ in 0..3 {
            upload(cluster, server)?;
        }
        merged(cluster, server)?;
    }
    merged(cluster, "client")
}

fn upload(cluster: &mut Cluster, server: &str) -> Result<()> {
    let answer = cluster.run(
        "client",
        &format!(
            "curl -sS -m 110 --fail -H Expect: --data-binary @/srv/www/1m http://10.77.0.100/{server}/upload"
        ),
    )?;
    let file = answer.trim();
    ensure!(
        file.starts_with('/'),
        "{server} kept the upload as {file:?}"
    );
    cluster
        .run(server, &format!("cmp {file} /srv/www/1m && rm {file}"))
        .map(drop)
        .context("the upload differs")
}

/// Has a machine note, from this call on, packets that are larger than any frame.
fn watch(cluster: &mut Cluster, on: &str, filter: &str) -> Result<()> {
    cluster
        .run(
            on,
            &format!(
                "systemctl reset-failed merged 2>/dev/null; systemd-run -q --unit=merged \
                 -p StandardOutput=truncate:/run/merged tcpdump -i eth0 -nn -l -c 1 --immediate-mode tcp and {filter} and greater 2000; \
                 sleep 3"
            ),
        )
        .map(drop)
}

fn merged(cluster: &mut Cluster, on: &str) -> Result<()> {
    let seen = cluster.run(on, "systemctl stop merged 2>/dev/null; cat /run/merged")?;
    ensure!(
        seen.contains("length"),
        "{on} has got no merged segments: its offloads do nothing"
    );
    Ok(())
}
