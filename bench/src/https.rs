//! Measures HTTPS that agents of data servers speak with clients, beside HAProxy that does so in front of the same servers,
//! and beside these servers' own TLS: requests a second, and what it costs that a connection moves.

use anyhow::{Context as _, Result};

use crate::competitor::Competitor;
use crate::handover_latency::{self, Subject};
use crate::lab::{BenchLab, in_bench};
use crate::options::Options;
use crate::tls::{SERVERS, table};
use crate::wrk::Target;

const LAB: &str = include_str!("../https/lab.toml");
const HAPROXY_CONFIG: &str = "bench/https/haproxy.cfg";
const NAME: &str = "www.example";
/// The port at which the servers speak TLS themselves. At the usual one the agents listen.
const DIRECT: u16 = 8443;
const HEADING: &str = "HTTPS that data servers' agents speak (goals: 1.5, 3 and 5 times HAProxy with 4 KB, 64 KB and 1 MB \
                       over connections that stay; 0.8 of direct)";
const MOVES: Subject = Subject {
    name: "Latency of a move with TLS",
    target,
    goal: "≤ 150",
};

/// Measures all loads and the moves, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let text = LAB.replace(HAPROXY_CONFIG, &in_bench("https/haproxy.cfg")?);
    let lab = BenchLab::raise_from(&text, options)?;
    for server in SERVERS {
        speak_tls(&lab, server)?;
    }
    let haproxy = "until openssl s_client -connect 10.77.0.3:443 </dev/null; do sleep 0.1; done";
    lab.said("client", &["sh", "-c", haproxy])?;
    let moves = handover_latency::measure(&lab, options, MOVES)?;
    Ok(table(&lab, options, HEADING, target)? + "\n" + &moves)
}

fn target(competitor: Competitor) -> Target {
    let target = Target::tls(competitor.name(), competitor.addresses(), NAME);
    match competitor {
        Competitor::Direct => target.at_port(DIRECT),
        _ => target,
    }
}

/// Has a server speak TLS itself as well, with the certificate that the agent beside it has. It resumes no sessions, so
/// that each new connection makes a whole handshake.
fn speak_tls(lab: &BenchLab, server: &str) -> Result<()> {
    let folder = &lab.running()?.host(server)?.directory;
    let folder = folder.to_str().context("its path is not UTF-8")?;
    let script = format!(
        "sed -i 's,listen 80 .*,& listen {DIRECT} ssl reuseport backlog=4096; ssl_session_tickets off;\
            ssl_certificate {folder}/{NAME}.pem; ssl_certificate_key {folder}/{NAME}.pem;,' {folder}/nginx/nginx.conf
         kill -HUP $(cat {folder}/nginx/nginx.pid)
         until openssl s_client -connect localhost:{DIRECT} >{folder}/said 2>&1 </dev/null; do sleep 0.1; done"
    );
    lab.said(server, &["sh", "-ec", &script]).map(drop)
}
