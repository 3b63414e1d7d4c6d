//! Reads firewall rules in the form that `iptables-save` prints.

use std::net::Ipv4Addr;

use super::rules::{Action, Base, Packet, Rule, Rules, Truth};

/// Reads the program's output. The conditions of its rules are judged for `packet`.
pub fn read(text: &str, packet: &Packet<'_>) -> Rules {
    let mut rules = Rules::default();
    let mut table = "";
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('*') {
            table = name;
            // These are the priorities of the tables' chains in the kernel (linux/netfilter_ipv4.h).
            let priority = match table {
                "raw" => -300,
                "nat" => -100,
                _ => 0,
            };
            if table == "nat" {
                rules.nat = Some("iptables' table nat".to_owned());
            }
            if matches!(table, "raw" | "nat") {
                rules.bases.push(Base {
                    chain: format!("{table} PREROUTING"),
                    priority,
                    is_nat: table == "nat",
                });
            }
        } else if let Some(rule) = line.strip_prefix("-A ") {
            let words = words(rule);
            if let Some((chain, words)) = words.split_first() {
                let rule = self::rule(words, table, packet);
                rules
                    .chains
                    .entry(format!("{table} {chain}"))
                    .or_default()
                    .push(rule);
            }
        }
    }
    rules
}

/// Splits a line at spaces, but not within quotes, which are around comments.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn rule(words: &[String], table: &str, packet: &Packet<'_>) -> Rule {
    let mut applies = Truth::Yes;
    let mut action = Action::Nothing;
    let mut negated = false;
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        if word == "!" {
            negated = true;
            continue;
        }
        if !word.starts_with('-') {
            // This is a further value of an option that is not understood.
            continue;
        }
        let mut value = || words.next_if(|next| *next != "!").unwrap_or_default();
        let truth = match word {
            "-j" | "-g" => {
                action = target(value(), table, word == "-g");
                Truth::Yes
            }
            "--to-destination" | "--to-ports" => {
                action = Action::Translate(value().to_owned());
                Truth::Yes
            }
            "--notrack" => {
                action = Action::Untrack;
                Truth::Yes
            }
            "-m" | "--comment" | "--random" | "--persistent" => {
                if matches!(word, "-m" | "--comment") {
                    value();
                }
                Truth::Yes
            }
            "-p" => Truth::from(matches!(value(), "tcp" | "all")),
            "-d" => contains(value(), packet.address),
            "-i" => packet
                .interface
                .map_or(Truth::Maybe, |own| is_interface(value(), own)),
            "--dport" | "--dports" => ports(value(), packet.port),
            "--dst-type" => match value() {
                "LOCAL" => Truth::Yes,
                "UNICAST" | "BROADCAST" | "MULTICAST" => Truth::No,
                _ => Truth::Maybe,
            },
            _ => Truth::Maybe,
        };
        applies = applies.and(truth.negated_if(negated));
        negated = false;
    }
    Rule { applies, action }
}

fn target(name: &str, table: &str, goto: bool) -> Action {
    match name {
        // The destination follows in an option of its own.
        "DNAT" | "REDIRECT" => Action::Translate(name.to_owned()),
        "NOTRACK" => Action::Untrack,
        "RETURN" => Action::Return,
        "ACCEPT" | "DROP" | "REJECT" => Action::Stop,
        "LOG" | "MARK" | "CT" | "CONNMARK" | "NFLOG" | "TRACE" => Action::Nothing,
        chain if goto => Action::Goto(format!("{table} {chain}")),
        chain => Action::Jump(format!("{table} {chain}")),
    }
}

/// Whether a network contains the address: `192.0.2.0/24`, with a prefix length or a mask, or an address alone.
fn contains(network: &str, address: Ipv4Addr) -> Truth {
    let (base, length) = network.split_once('/').unwrap_or((network, "32"));
    let mask = match (length.parse::<u32>(), length.parse::<Ipv4Addr>()) {
        (Ok(length), _) => u32::MAX.checked_shl(32_u32.saturating_sub(length)),
        (_, Ok(mask)) => Some(mask.to_bits()),
        _ => return Truth::Maybe,
    };
    let Ok(base) = base.parse::<Ipv4Addr>() else {
        return Truth::Maybe;
    };
    let mask = mask.unwrap_or(0);
    Truth::from(base.to_bits() & mask == address.to_bits() & mask)
}

/// Whether the interface matches the pattern: `eth0`, or `eth+` for all names that begin with `eth`.
pub(super) fn is_interface(pattern: &str, own: &str) -> Truth {
    let begins = pattern.strip_suffix(['+', '*']);
    Truth::from(begins.map_or(pattern == own, |begin| own.starts_with(begin)))
}

/// Whether the list contains the port: `80`, `80:90`, or several of them separated by commas.
fn ports(list: &str, port: u16) -> Truth {
    let mut truth = Truth::No;
    for part in list.split(',') {
        let (first, last) = part.split_once(':').unwrap_or((part, part));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) => truth = truth.max((first..=last).contains(&port).into()),
            _ => truth = truth.max(Truth::Maybe),
        }
    }
    truth
}

#[cfg(test)]
mod tests {
    use super::super::rules::Fate;
    use super::*;

    /// The rules that Docker 28 writes for `docker run -p 80:80`, shortened to the relevant tables.
    const DOCKER: &str = r#"# Generated by iptables-save v1.8.9 (nf_tables)
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
-A DOCKER ! -i docker0 -p tcp -m tcp --dport 80 -j DNAT --to-destination 172.17.0.2:80
COMMIT
"#;

    fn fate(text: &str, port: u16) -> Fate {
        let packet = Packet {
            address: Ipv4Addr::new(192, 0, 2, 100),
            port,
            interface: Some("eth0"),
        };
        read(text, &packet).fate()
    }

    fn changed(surely: bool) -> Fate {
        Fate::Changed {
            surely,
            to: "172.17.0.2:80".into(),
            chain: "nat DOCKER".into(),
        }
    }

    #[test]
    fn a_published_port() {
        assert_eq!(fate(DOCKER, 80), changed(true));
        assert_eq!(fate(DOCKER, 443), Fate::Kept);
        // The port is published at the node's own address only.
        let narrow = DOCKER.replace("-A DOCKER ! -i", "-A DOCKER -d 192.0.2.11/32 ! -i");
        assert_eq!(fate(&narrow, 80), Fate::Kept);
        let other = DOCKER.replace("! -i docker0", "-i docker0");
        assert_eq!(fate(&other, 80), Fate::Kept);
        let limited = DOCKER.replace("-p tcp -m tcp", "-s 198.51.100.0/24 -p tcp -m tcp");
        assert_eq!(fate(&limited, 80), changed(false));
        assert_eq!(fate(&DOCKER.replace("tcp", "udp"), 80), Fate::Kept);
        let range = DOCKER.replace("--dport 80", "-m multiport --dports 22,79:81");
        assert_eq!(fate(&range, 80), changed(true));
        let network = DOCKER.replace("! -i docker0", "-d 192.0.2.0/255.255.255.0");
        assert_eq!(fate(&network, 80), changed(true));
    }

    #[test]
    fn a_comment_is_no_condition() {
        let text = DOCKER.replace(
            "-A PREROUTING",
            "-A PREROUTING -m comment --comment \"to -p udp\"",
        );
        assert_eq!(fate(&text, 80), changed(true));
    }

    #[test]
    fn what_is_not_tracked() {
        let packet = Packet {
            address: Ipv4Addr::new(192, 0, 2, 100),
            port: 80,
            interface: None,
        };
        let untracks = |rule: &str| {
            let text = format!("*raw\n:PREROUTING ACCEPT [0:0]\n{rule}\nCOMMIT\n");
            read(&text, &packet).untracks()
        };
        assert!(untracks(
            "-A PREROUTING -d 192.0.2.100/32 -p tcp -m tcp --dport 80 -j CT --notrack"
        ));
        assert!(untracks("-A PREROUTING -d 192.0.2.100/32 -j NOTRACK"));
        assert!(!untracks("-A PREROUTING -d 192.0.2.11/32 -j CT --notrack"));
        assert!(!untracks("-A PREROUTING -i eth1 -j CT --notrack"));
    }

    #[test]
    fn nonsense_is_no_rule() {
        assert_eq!(
            fate("-A\n-A PREROUTING\n*nat\n-A PREROUTING -j\n\"", 80),
            Fate::Kept
        );
    }
}
