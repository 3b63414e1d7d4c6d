//! The page, which explains the idea to a newcomer, with the numbers of this run.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Write as _};

use baton_lab::Counted;
use console::style;
use indicatif::{BinaryBytes, HumanCount};

use super::Observed;
use super::claims::{self, Claim};

/// The whole page. It has colors only if standard output is a terminal.
pub fn page(seen: &Observed, claims: &[Claim]) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = write(&mut text, seen, claims);
    text
}

fn write(page: &mut String, seen: &Observed, claims: &[Claim]) -> fmt::Result {
    idea(page, seen)?;
    singles(page, seen)?;
    kept(page, seen)?;
    download(page, seen)?;
    load(page, seen)?;
    wires(page, seen)?;
    verdict(page, seen, claims)
}

fn idea(page: &mut String, seen: &Observed) -> fmt::Result {
    let (cluster, cs, client) = (seen.cluster.ip(), &seen.cs, seen.client);
    let servers = seen.servers.join("   ");
    let count = seen.servers.len();
    heading(
        page,
        "One address, many servers, and no proxy in the way of an answer",
    )?;
    write!(
        page,
        "
The client knows one address, {cluster}. Behind it are {count} servers that it has never heard of, each
an ordinary nginx on a host of its own (here: network namespaces, joined by a bridge).

                 1  SYN, GET, every ACK
      client  ---------------------------->  {cs:<8} connection server: a program in the
    {client:<12}                             |        network driver's hook, without a socket
        ^                                    |  2  \"adopt this connection\" + the GET
        |                                    v
        +---------------------------  {servers}
          3  the answer, straight             data servers: nginx, unchanged
             from a data server, with {cluster} as its source

 1  {cs} completes the TCP handshake by itself. It remembers nothing yet: the SYN-ACK's sequence
    number is a signed cookie.
 2  When the request is there, {cs} chooses a data server and sends it one packet: adopt this
    connection, with the client's request inside. The data server's kernel makes a socket of it, in
    the middle of the connection's life, for the program that listens there.
 3  nginx accepts the connection as any other, and answers. What the client sends later goes by way of
    {cs}, which only passes it on; what the server sends never does. A further request that another
    server is to answer takes the connection there.
"
    )
}

fn singles(page: &mut String, seen: &Observed) -> fmt::Result {
    let count = seen.singles.len();
    let title = format!("{count} requests, each on a connection of its own: /whoami");
    heading(page, title)?;
    writeln!(
        page,
        "\n    what curl saw                             what the server logged"
    )?;
    for (number, answer) in (1..).zip(&seen.singles) {
        let logged = if claims::is_logged(seen, answer) {
            format!("a request of {}", answer.client)
        } else {
            "no such request".to_owned()
        };
        writeln!(
            page,
            "{number:>2}  {:<17} -> {:<16} {:<5}  {:<4} {logged}",
            answer.client, answer.server, answer.says, answer.says
        )?;
    }
    Ok(())
}

fn kept(page: &mut String, seen: &Observed) -> fmt::Result {
    let made: u32 = seen.kept.iter().map(|answer| answer.connections).sum();
    let title = format!("{} requests, connections made: {made}", seen.kept.len());
    heading(page, title)?;
    writeln!(page)?;
    for answer in &seen.kept {
        writeln!(
            page,
            "    {:<16} answered by {}",
            answer.path,
            answer.host()
        )?;
    }
    let moved = seen.counters.get("cs_moved_on").copied().unwrap_or(0);
    writeln!(
        page,
        "\n{moved} times the connection moved: its owner passed it on, with the request, to the server that
the path names, and ended its own socket without a word on the wire. curl saw one connection."
    )
}

fn download(page: &mut String, seen: &Observed) -> fmt::Result {
    let (answer, sum) = &seen.download;
    let sent_it = |path: &str| path == answer.path;
    let servers = seen.logs.iter();
    let server = servers
        .filter(|log| log.entries.iter().any(|entry| sent_it(&entry.path)))
        .map(|log| &*log.server)
        .next()
        .unwrap_or("nobody that logged it");
    // An f64 is exact for numbers of bytes far beyond this.
    let rate = (answer.bytes as f64 / answer.seconds.max(1e-9)) as u64;
    heading(page, format!("A download: {}", answer.path))?;
    writeln!(
        page,
        "\n{} bytes from {server} in {:.2} s ({}/s)\nsha256 {sum}\n{:6} {} the file on the servers",
        HumanCount(answer.bytes),
        answer.seconds,
        BinaryBytes(rate),
        "",
        if *sum == seen.file.sha256 {
            "which is that of"
        } else {
            "NOT that of"
        },
    )
}

fn load(page: &mut String, seen: &Observed) -> fmt::Result {
    let load = &seen.load;
    heading(page, format!("Load: wrk {}", load.words))?;
    let shares: Vec<String> = seen
        .logs
        .iter()
        .map(|log| format!("{} {}", log.server, HumanCount(log.entries.len() as u64)))
        .collect();
    writeln!(
        page,
        "\n{} requests, {} a second; half within {}, 99 % within {}; errors: {}\n\
         all requests so far by the servers' own logs: {}",
        HumanCount(load.requests),
        HumanCount(load.rate.round() as u64), // not negative, and far from the end of u64
        load.median,
        load.slowest_hundredth,
        load.errors.as_deref().unwrap_or("none"),
        shares.join(", ")
    )
}

fn wires(page: &mut String, seen: &Observed) -> fmt::Result {
    let (wire, cs) = (&seen.wire, &seen.cs);
    heading(page, "What crossed the wires, counted on the bridge")?;
    writeln!(page, "\n{:56}{:>10}{:>16}", "", "frames", "bytes")?;
    let mut row = |what: &str, crossed: Counted| {
        writeln!(
            page,
            "{what:<56}{:>10}{:>16}",
            HumanCount(crossed.packets).to_string(),
            HumanCount(crossed.bytes).to_string()
        )
    };
    row(&format!("client -> {cs}: requests and ACKs"), wire.asked)?;
    row(
        &format!("{cs} -> client: handshakes (SYN-ACK)"),
        wire.greeted,
    )?;
    row(
        &format!("{cs} -> data servers: adoptions, heartbeats"),
        wire.told,
    )?;
    row(
        &format!("{cs} -> data servers: the client's packets, passed on"),
        wire.forwarded,
    )?;
    row(&format!("answers into or out of {cs}"), wire.detoured)?;
    for (server, crossed) in &wire.answered {
        row(&format!("{server} -> client: answers"), *crossed)?;
    }
    let counter = |name: &str| seen.counters.get(name).copied().unwrap_or(0);
    let (link, got) = (seen.link, seen.got());
    writeln!(
        page,
        "\n{cs} itself counted {} handshakes, {} adoptions, {} packets passed on, and {} bytes of answers.\n\
         Its interface, all told: {} in, {} out. The client got {} of answers:\n\
         a proxy would have had to take in that much, and to send it out again.",
        HumanCount(counter("cs_syn")),
        HumanCount(counter("cs_adopt")),
        HumanCount(counter("cs_forward")),
        HumanCount(counter("cs_response_bytes")),
        BinaryBytes(link.bytes_in),
        BinaryBytes(link.bytes_out),
        BinaryBytes(got),
    )
}

fn verdict(page: &mut String, seen: &Observed, claims: &[Claim]) -> fmt::Result {
    heading(page, "So it was in this run")?;
    writeln!(page)?;
    for claim in claims {
        match &claim.broken {
            None => writeln!(page, " {}  {}", style("yes").green(), claim.says)?,
            Some(why) => writeln!(
                page,
                " {}   {}: {why}",
                style("NO").red().bold(),
                claim.says
            )?,
        }
    }
    let addresses: BTreeSet<_> = seen
        .singles
        .iter()
        .map(|answer| answer.server.ip())
        .collect();
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    writeln!(
        page,
        "\nAddresses that the client met: {}. All this took {:.0} s, and nothing of it is left.\n\
         By hand: baton lab up labs/split.toml, then baton lab exec client -- curl http://{}/whoami",
        addresses.join(", "),
        seen.took.as_secs_f64(),
        seen.cluster.ip(),
    )
}

fn heading(page: &mut String, title: impl Display) -> fmt::Result {
    writeln!(page, "\n{}", style(title).bold())
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    fn of(seen: &Observed) -> String {
        page(seen, &claims::all(seen))
    }

    #[test]
    fn it_tells_who_answered_whom() {
        let page = of(&example::observed());
        let line =
            " 2  10.77.0.1:1002    -> 10.77.0.100:80   ds2    ds2  a request of 10.77.0.1:1002";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("8 bytes from ds2"), "{page}");
        assert!(!page.contains("NO"), "{page}");
    }

    #[test]
    fn it_does_not_hide_what_was_wrong() {
        let mut seen = example::observed();
        seen.download.1 = "other".to_owned();
        seen.wire.detoured.packets = 3;
        let page = of(&seen);
        assert!(page.contains("NOT that of"), "{page}");
        assert!(
            page.contains("NO   no response passed the connection server: 3 frames"),
            "{page}"
        );
    }

    #[test]
    fn no_line_is_wider_than_a_page() {
        let page = of(&example::observed());
        let widest = page
            .lines()
            .max_by_key(|line| line.chars().count())
            .unwrap_or_default();
        assert!(widest.chars().count() <= 104, "{widest}");
    }
}
