//! The claims of the demonstration, each checked against what was observed.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::Observed;
use super::curl::Answer;

/// A claim of the demonstration, and whether it held in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The claim, in a sentence.
    pub says: &'static str,
    /// The reason why the claim did not hold; `None` if it did.
    pub broken: Option<String>,
}

/// All claims, in the order of the page.
pub fn all(seen: &Observed) -> Vec<Claim> {
    vec![
        claim("every request was answered", answered(seen)),
        claim("every data server answered some", each_served(seen)),
        claim(
            "the client connected to one address only",
            one_address(seen),
        ),
        claim("the file arrived byte for byte", same_bytes(seen)),
        claim("requests on one connection stayed on it", kept_alive(seen)),
        claim(
            "each of them was answered by the server that its path names",
            routed(seen),
        ),
        claim("the load met no error", seen.load.errors.clone()),
        claim(
            "servers saw the client's own address and port",
            real_client(seen),
        ),
        claim("no response passed the connection server", no_detour(seen)),
        claim("all bytes came straight from data servers", straight(seen)),
    ]
}

fn claim(says: &'static str, broken: Option<String>) -> Claim {
    Claim { says, broken }
}

fn answered(seen: &Observed) -> Option<String> {
    let bad = answers(seen).find(|answer| answer.status != 200)?;
    Some(format!("{} drew status {}", bad.path, bad.status))
}

fn each_served(seen: &Observed) -> Option<String> {
    let idle = |server: &&String| !seen.singles.iter().any(|answer| answer.says == **server);
    let idle: Vec<&str> = seen
        .servers
        .iter()
        .filter(idle)
        .map(String::as_str)
        .collect();
    if !idle.is_empty() {
        return Some(format!("{} answered none of the requests", idle.join(", ")));
    }
    let unknown = seen
        .singles
        .iter()
        .find(|answer| !seen.servers.contains(&answer.says))?;
    Some(format!(
        "{:?} answered, which is no data server",
        unknown.says
    ))
}

fn one_address(seen: &Observed) -> Option<String> {
    let met: BTreeSet<SocketAddr> = answers(seen).map(|answer| answer.server).collect();
    (met != BTreeSet::from([seen.cluster])).then(|| format!("it was connected to {met:?}"))
}

fn same_bytes(seen: &Observed) -> Option<String> {
    let (got, sum) = &seen.download;
    (got.bytes != seen.file.bytes || *sum != seen.file.sha256).then(|| {
        format!(
            "got {} bytes with sha256 {sum}, the file has {} with {}",
            got.bytes, seen.file.bytes, seen.file.sha256
        )
    })
}

fn kept_alive(seen: &Observed) -> Option<String> {
    let made: u32 = seen.kept.iter().map(|answer| answer.connections).sum();
    let ports: BTreeSet<u16> = seen
        .kept
        .iter()
        .map(|answer| answer.client.port())
        .collect();
    (made != 1 || ports.len() != 1).then(|| {
        format!(
            "{made} connections were made for {} requests",
            seen.kept.len()
        )
    })
}

fn routed(seen: &Observed) -> Option<String> {
    let is_right = |answer: &Answer| answer.says == format!("{} {}", named(answer), answer.path);
    let wrong = seen.kept.iter().find(|answer| !is_right(answer))?;
    Some(format!("{} was answered with {:?}", wrong.path, wrong.says))
}

/// The server that a path like /ds1/page names.
fn named(answer: &Answer) -> &str {
    answer.path.split('/').nth(1).unwrap_or_default()
}

/// Checks that every entry of every log names the client, and that each request of curl is in the log of the server
/// that answered, with the very port that curl had.
fn real_client(seen: &Observed) -> Option<String> {
    for log in &seen.logs {
        let foreign = log
            .entries
            .iter()
            .find(|entry| entry.client.ip() != seen.client);
        if let Some(entry) = foreign {
            return Some(format!(
                "{} logged a request of {}",
                log.server, entry.client
            ));
        }
    }
    let mut named = seen.singles.iter().chain(&seen.kept);
    let missing = named.find(|answer| !is_logged(seen, answer))?;
    Some(format!(
        "{} answered {} to {} and did not log it so",
        missing.says, missing.path, missing.client
    ))
}

fn no_detour(seen: &Observed) -> Option<String> {
    let frames = seen.wire.detoured.packets;
    if frames > 0 {
        return Some(format!("{frames} frames of responses crossed its wire"));
    }
    match seen.counters.get("cs_response_bytes") {
        Some(0) => None,
        Some(bytes) => Some(format!("it counted {bytes} bytes of responses itself")),
        None => Some("its node has no counter cs_response_bytes".to_owned()),
    }
}

fn straight(seen: &Observed) -> Option<String> {
    let (sent, got) = (seen.sent(), seen.got());
    (sent < got).then(|| format!("the client got {got} bytes, data servers sent {sent}"))
}

/// Whether the log of the server that answered contains the request.
pub fn is_logged(seen: &Observed, answer: &Answer) -> bool {
    let log = seen.logs.iter().find(|log| log.server == answer.host());
    log.is_some_and(|log| {
        let same = |path: &str, client| path == answer.path && client == answer.client;
        log.entries
            .iter()
            .any(|entry| same(&entry.path, entry.client))
    })
}

fn answers(seen: &Observed) -> impl Iterator<Item = &Answer> {
    seen.singles
        .iter()
        .chain([&seen.download.0])
        .chain(&seen.kept)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    /// The claims that no longer hold after `spoil` has changed a good run.
    fn broken(spoil: impl FnOnce(&mut Observed)) -> Vec<&'static str> {
        let mut seen = example::observed();
        spoil(&mut seen);
        let broken = all(&seen)
            .into_iter()
            .filter(|claim| claim.broken.is_some());
        broken.map(|claim| claim.says).collect()
    }

    #[test]
    fn a_good_run_breaks_none() {
        assert_eq!(broken(|_| {}), [""; 0]);
    }

    #[test]
    fn each_claim_can_break() {
        let cases: [(&str, Vec<&str>); 12] = [
            (
                "every request was answered",
                broken(|seen| seen.kept[0].status = 502),
            ),
            (
                "every data server answered some",
                broken(|seen| seen.servers.push("ds9".into())),
            ),
            (
                "the client connected to one address only",
                broken(|seen| seen.singles[1].server.set_port(81)),
            ),
            (
                "the file arrived byte for byte",
                broken(|seen| seen.download.1.push('0')),
            ),
            (
                "the file arrived byte for byte",
                broken(|seen| seen.download.0.bytes -= 1),
            ),
            (
                "requests on one connection stayed on it",
                broken(|seen| seen.kept[1].connections = 1),
            ),
            (
                "each of them was answered by the server that its path names",
                broken(|seen| seen.kept[1].says = "ds2 /ds2/other".into()),
            ),
            (
                "the load met no error",
                broken(|seen| seen.load.errors = Some("read 1".into())),
            ),
            (
                "servers saw the client's own address and port",
                broken(|seen| seen.logs[0].entries[0].client.set_ip([10, 77, 0, 2].into())),
            ),
            (
                "servers saw the client's own address and port",
                broken(|seen| seen.logs[1].entries.clear()),
            ),
            (
                "no response passed the connection server",
                broken(|seen| seen.wire.detoured.packets = 1),
            ),
            (
                "all bytes came straight from data servers",
                broken(|seen| seen.wire.answered.clear()),
            ),
        ];
        for (says, broken) in cases {
            assert_eq!(broken, [says]);
        }
        let counted = broken(|seen| {
            seen.counters.insert("cs_response_bytes".into(), 1);
        });
        assert_eq!(counted, ["no response passed the connection server"]);
    }
}
