//! Measures HTTPS that is routed by the name of the server: requests a second over connections that stay, and over new
//! ones. Only the servers have keys.

use anyhow::{Context as _, Result};

use crate::competitor::Competitor;
use crate::lab::{BenchLab, in_bench};
use crate::options::Options;
use crate::rounds::Rounds;
use crate::wrk::{Pages, Target, Work};

const LAB: &str = include_str!("../tls/lab.toml");
const HAPROXY_CONFIG: &str = "bench/tls/haproxy.cfg";
/// The name that clients want. All three servers are its own.
const NAME: &str = "site.example";
pub(crate) const SERVERS: [&str; 3] = ["ds1", "ds2", "ds3"];

/// The loads: a name, a page, and whether each request has a connection of its own.
const LOADS: [(&str, &str, bool); 6] = [
    ("4 KB keep-alive", "/4k", false),
    ("64 KB keep-alive", "/64k", false),
    ("1 MB keep-alive", "/1m", false),
    ("4 KB close", "/4k", true),
    ("64 KB close", "/64k", true),
    ("1 MB close", "/1m", true),
];

/// Measures all loads, and returns the report in Markdown.
pub(crate) fn measure(options: &Options) -> Result<String> {
    let text = LAB.replace(HAPROXY_CONFIG, &in_bench("tls/haproxy.cfg")?);
    let lab = BenchLab::raise_from(&text, options)?;
    for server in SERVERS {
        forget_sessions(&lab, server)?;
    }
    table(&lab, options, "HTTPS by the name of the server", target)
}

/// Measures all loads in this lab, and returns a table in Markdown.
pub(crate) fn table(
    lab: &BenchLab,
    options: &Options,
    heading: &str,
    target: fn(Competitor) -> Target,
) -> Result<String> {
    let mut text = format!(
        "## {heading}: requests a second (median of rounds), ratios within a round: median (min–max), and processor \
         time of the whole machine, µs a request\n\n\
         | load | baton | direct | HAProxy | baton/HAProxy | baton/direct | µs: baton, direct, HAProxy | \
         errors: baton, direct, HAProxy |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for (name, page, close) in LOADS {
        eprintln!("{name}: {} rounds", options.rounds);
        let work = Work {
            pages: Pages::One(page),
            close,
            connections: options.connections,
            threads: SERVERS.len() as u32,
            time: options.turn,
        };
        text += &line(name, &Rounds::measure(lab, options.rounds, target, work)?);
    }
    Ok(text)
}

fn target(competitor: Competitor) -> Target {
    Target::tls(competitor.name(), competitor.addresses(), NAME)
}

fn line(name: &str, rounds: &Rounds) -> String {
    let [baton, direct, haproxy] = Competitor::ALL.map(|one| rounds.rate(one).median);
    let [baton_cpu, direct_cpu, haproxy_cpu] = Competitor::ALL.map(|one| rounds.cpu(one).median);
    let [baton_errors, direct_errors, haproxy_errors] =
        Competitor::ALL.map(|one| rounds.errors(one));
    format!(
        "| {name} | {baton:.0} | {direct:.0} | {haproxy:.0} | {} | {} | \
         {baton_cpu:.1}, {direct_cpu:.1}, {haproxy_cpu:.1} | {baton_errors}, {direct_errors}, {haproxy_errors} |\n",
        rounds.baton_to(Competitor::HaProxy),
        rounds.baton_to(Competitor::Direct),
    )
}

/// Has a server resume no sessions, so that each new connection makes a whole handshake, as that of a new client does.
/// wrk would resume its sessions, and only in direct access would it always come to the server that knows them.
fn forget_sessions(lab: &BenchLab, server: &str) -> Result<()> {
    let folder = lab.running()?.host(server)?.directory.join("nginx");
    let folder = folder.to_str().context("its path is not UTF-8")?;
    let script = format!(
        "sed -i 's/ssl_certificate /ssl_session_tickets off; &/' {folder}/nginx.conf
         kill -HUP $(cat {folder}/nginx.pid)
         until said=$(openssl s_client -tls1_2 -connect localhost:443 2>&1 </dev/null) &&
             ! echo \"$said\" | grep -q 'session ticket:'; do
             sleep 0.1
         done"
    );
    lab.said(server, &["sh", "-ec", &script]).map(drop)
}
