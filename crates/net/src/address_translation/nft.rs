//! Reads firewall rules in the form that `nft --json list ruleset` prints (libnftables-json(5)).

use serde_json::Value;

use super::iptables::is_interface;
use super::rules::{Action, Base, Packet, Rule, Rules, Truth};

/// Reads the program's output. The conditions of its rules are judged for `packet`. Rules that iptables wrote show as
/// `xt` there, without their parameters; `opaque` says whether they count nevertheless, because no other program shows
/// them.
pub fn read(ruleset: &Value, packet: &Packet<'_>, opaque: bool) -> Rules {
    let mut rules = Rules::default();
    let items = ruleset["nftables"].as_array().into_iter().flatten();
    for item in items {
        let (chain, rule) = (&item["chain"], &item["rule"]);
        if chain["type"] == "nat" && is_ipv4(chain) {
            let name = full_name(chain, &chain["name"]);
            rules.nat.get_or_insert(format!("the chain \"{name}\""));
        }
        if chain["hook"] == "prerouting" && is_ipv4(chain) {
            rules.bases.push(Base {
                chain: full_name(chain, &chain["name"]),
                priority: chain["prio"].as_i64().unwrap_or(0),
                is_nat: chain["type"] == "nat",
            });
        }
        if rule.is_object() && is_ipv4(rule) {
            let name = full_name(rule, &rule["chain"]);
            let read = Reader {
                rule,
                packet,
                opaque,
            };
            rules.chains.entry(name).or_default().extend(read.rules());
        }
    }
    rules
}

fn is_ipv4(object: &Value) -> bool {
    object["family"] == "ip" || object["family"] == "inet"
}

fn full_name(object: &Value, chain: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (family, table) = (word(&object["family"]), word(&object["table"]));
    format!("{family} {table} {}", word(chain))
}

struct Reader<'a> {
    rule: &'a Value,
    packet: &'a Packet<'a>,
    opaque: bool,
}

impl Reader<'_> {
    /// The rule, or several rules if it chooses among verdicts.
    fn rules(&self) -> Vec<Rule> {
        let mut applies = Truth::Yes;
        for statement in self.rule["expr"].as_array().into_iter().flatten() {
            let Some((kind, value)) = statement.as_object().and_then(|one| one.iter().next())
            else {
                continue;
            };
            let action = match kind.as_str() {
                "match" => {
                    let negated = value["op"] == "!=";
                    applies = applies.and(self.holds(value).negated_if(negated));
                    continue;
                }
                "dnat" | "redirect" => Action::Translate(destination(kind, value)),
                "notrack" => Action::Untrack,
                "jump" => Action::Jump(full_name(self.rule, &value["target"])),
                "goto" => Action::Goto(full_name(self.rule, &value["target"])),
                "return" => Action::Return,
                "accept" | "drop" | "reject" => Action::Stop,
                "vmap" => return self.choice(applies, value),
                "xt" if self.opaque => match value["name"].as_str() {
                    Some(name @ ("DNAT" | "REDIRECT")) => {
                        applies = applies.and(Truth::Maybe);
                        Action::Translate(format!("wherever iptables' {name} says"))
                    }
                    _ => {
                        applies = applies.and(Truth::Maybe);
                        continue;
                    }
                },
                "xt" => return Vec::new(),
                // These are counter, log, comment, mangle and the like.
                _ => continue,
            };
            return vec![Rule { applies, action }];
        }
        Vec::new()
    }

    fn choice(&self, applies: Truth, vmap: &Value) -> Vec<Rule> {
        let pairs = vmap["data"]["set"].as_array().into_iter().flatten();
        let rule = |pair: &Value| {
            let (key, verdict) = (&pair[0], &pair[1]);
            let truth = applies.and(self.compare(&vmap["key"], key));
            let (kind, value) = verdict.as_object()?.iter().next()?;
            let action = match kind.as_str() {
                "jump" => Action::Jump(full_name(self.rule, &value["target"])),
                "goto" => Action::Goto(full_name(self.rule, &value["target"])),
                "return" => Action::Return,
                "accept" | "drop" => Action::Stop,
                _ => Action::Nothing,
            };
            Some(Rule {
                applies: truth,
                action,
            })
        };
        pairs.filter_map(rule).collect()
    }

    fn holds(&self, condition: &Value) -> Truth {
        match condition["op"].as_str() {
            Some("==" | "!=" | "in") => self.compare(&condition["left"], &condition["right"]),
            _ => Truth::Maybe,
        }
    }

    /// Whether the field of the packet that `left` names is equal to `right`, or is in it.
    fn compare(&self, left: &Value, right: &Value) -> Truth {
        let payload = (
            left["payload"]["protocol"].as_str(),
            left["payload"]["field"].as_str(),
        );
        let meta = left["meta"]["key"].as_str();
        match (payload, meta) {
            ((Some("ip"), Some("daddr")), _) => {
                any(right, &|one| address_is(one, self.packet.address))
            }
            ((Some("tcp" | "th"), Some("dport")), _) => {
                any(right, &|one| port_is(one, self.packet.port))
            }
            ((Some("ip"), Some("protocol")), _) | (_, Some("l4proto")) => any(right, &|one| {
                Truth::from(one == "tcp" || one == &Value::from(6))
            }),
            ((Some("udp"), _), _) => Truth::No,
            (_, Some("iifname" | "iif")) => {
                any(right, &|one| match (one.as_str(), self.packet.interface) {
                    (Some(name), Some(own)) => is_interface(name, own),
                    _ => Truth::Maybe,
                })
            }
            (_, Some("nfproto")) => any(right, &|one| Truth::from(one == "ipv4")),
            _ if left["fib"]["result"] == "type"
                && left["fib"]["flags"] == Value::from(["daddr"].as_slice()) =>
            {
                any(right, &|one| Truth::from(one == "local"))
            }
            _ => Truth::Maybe,
        }
    }
}

/// Whether `is` holds for a value, or for any value of a set. The contents of a named set are not looked up.
fn any(right: &Value, is: &impl Fn(&Value) -> Truth) -> Truth {
    if right.as_str().is_some_and(|name| name.starts_with('@')) {
        return Truth::Maybe;
    }
    match right["set"].as_array() {
        Some(set) => set.iter().map(is).max().unwrap_or(Truth::No),
        None => is(right),
    }
}

fn address_is(one: &Value, address: std::net::Ipv4Addr) -> Truth {
    let parse = |value: &Value| value.as_str()?.parse::<std::net::Ipv4Addr>().ok();
    if let (Some(base), Some(length)) =
        (parse(&one["prefix"]["addr"]), one["prefix"]["len"].as_u64())
    {
        let kept = u32::try_from(length).unwrap_or(32).min(32);
        let mask = u32::MAX.checked_shl(32 - kept).unwrap_or(0);
        return Truth::from(base.to_bits() & mask == address.to_bits() & mask);
    }
    if let (Some(first), Some(last)) = (parse(&one["range"][0]), parse(&one["range"][1])) {
        return Truth::from((first..=last).contains(&address));
    }
    parse(one).map_or(Truth::Maybe, |one| Truth::from(one == address))
}

fn port_is(one: &Value, port: u16) -> Truth {
    let port = u64::from(port);
    if let (Some(first), Some(last)) = (one["range"][0].as_u64(), one["range"][1].as_u64()) {
        return Truth::from((first..=last).contains(&port));
    }
    one.as_u64()
        .map_or(Truth::Maybe, |one| Truth::from(one == port))
}

fn destination(kind: &str, value: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match (text(&value["addr"]), text(&value["port"])) {
        (Some(address), Some(port)) => format!("{address}:{port}"),
        (Some(address), None) => address,
        (None, Some(port)) => format!("port {port} of this host"),
        (None, None) => format!("wherever its {kind} says"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::Fate;
    use super::*;

    /// A rule set with `fib daddr type local jump docker`, and with `rule` in that chain.
    fn ruleset(rule: &str) -> Value {
        let text = format!(
            r#"{{"nftables": [
                {{"metainfo": {{"version": "1.0.6"}}}},
                {{"table": {{"family": "ip", "name": "nat"}}}},
                {{"chain": {{"family": "ip", "table": "nat", "name": "pre", "type": "nat", "hook": "prerouting",
                    "prio": -100, "policy": "accept"}}}},
                {{"chain": {{"family": "ip", "table": "nat", "name": "docker"}}}},
                {{"rule": {{"family": "ip", "table": "nat", "chain": "pre", "expr": [
                    {{"match": {{"op": "==", "left": {{"fib": {{"result": "type", "flags": ["daddr"]}}}},
                        "right": "local"}}}}, {{"jump": {{"target": "docker"}}}}]}}}},
                {{"rule": {{"family": "ip", "table": "nat", "chain": "docker", "expr": [{rule}]}}}}]}}"#
        );
        serde_json::from_str(&text).expect("the test's text is JSON")
    }

    fn packet() -> Packet<'static> {
        Packet {
            address: [192, 0, 2, 100].into(),
            port: 80,
            interface: Some("eth0"),
        }
    }

    fn fate(rule: &str) -> Fate {
        read(&ruleset(rule), &packet(), false).fate()
    }

    fn changed(surely: bool, to: &str) -> Fate {
        Fate::Changed {
            surely,
            to: to.into(),
            chain: "ip nat docker".into(),
        }
    }

    const COUNTER: &str = r#"{"counter": {"packets": 18, "bytes": 1883}}"#;
    const DNAT: &str = r#"{"dnat": {"addr": "172.17.0.2", "port": 80}}"#;

    fn with(left: &str, op: &str, right: &str) -> Fate {
        fate(&format!(
            r#"{{"match": {{"op": "{op}", "left": {left}, "right": {right}}}}}, {COUNTER}, {DNAT}"#
        ))
    }

    #[test]
    fn conditions() {
        let dport = r#"{"payload": {"protocol": "tcp", "field": "dport"}}"#;
        let daddr = r#"{"payload": {"protocol": "ip", "field": "daddr"}}"#;
        let iif = r#"{"meta": {"key": "iifname"}}"#;
        let to = "172.17.0.2:80";
        assert_eq!(fate(&format!("{COUNTER}, {DNAT}")), changed(true, to));
        assert_eq!(with(dport, "==", "80"), changed(true, to));
        assert_eq!(with(dport, "==", "81"), Fate::Kept);
        assert_eq!(
            with(dport, "==", r#"{"set": [22, {"range": [79, 81]}]}"#),
            changed(true, to)
        );
        assert_eq!(with(daddr, "==", r#""192.0.2.11""#), Fate::Kept);
        assert_eq!(
            with(
                daddr,
                "!=",
                r#"{"prefix": {"addr": "127.0.0.0", "len": 8}}"#
            ),
            changed(true, to)
        );
        assert_eq!(with(iif, "!=", r#""docker0""#), changed(true, to));
        assert_eq!(with(iif, "==", r#""docker0""#), Fate::Kept);
        assert_eq!(with(dport, "==", r#""@ports""#), changed(false, to));
        let ct = r#"{"ct": {"key": "state"}}"#;
        assert_eq!(with(ct, "in", r#""new""#), changed(false, to));
    }

    #[test]
    fn other_ways_to_say_it() {
        assert_eq!(
            fate(r#"{"redirect": {"port": 8080}}"#),
            changed(true, "port 8080 of this host")
        );
        let jump = r#"{"vmap": {"key": {"payload": {"protocol": "tcp", "field": "dport"}},
            "data": {"set": [[80, {"return": null}], [81, {"accept": null}]]}}}"#;
        assert_eq!(fate(&format!("{jump}, {DNAT}")), Fate::Kept);
        let xt = r#"{"xt": {"type": "target", "name": "DNAT"}}"#;
        assert_eq!(fate(xt), Fate::Kept);
        assert!(matches!(
            read(&ruleset(xt), &packet(), true).fate(),
            Fate::Changed { surely: false, .. }
        ));
    }

    #[test]
    fn whether_there_is_any_translation() {
        let mut rules = ruleset(DNAT);
        let nat = |rules: &Value| read(rules, &packet(), false).nat;
        assert_eq!(nat(&rules).as_deref(), Some("the chain \"ip nat pre\""));
        rules["nftables"][2]["chain"]["hook"] = Value::from("postrouting");
        assert!(nat(&rules).is_some(), "masquerading is one as well");
        rules["nftables"][2]["chain"]["type"] = Value::from("filter");
        assert_eq!(nat(&rules), None);
    }

    #[test]
    fn not_tracked() {
        let mut rules = ruleset(r#"{"notrack": null}"#);
        assert!(!read(&rules, &packet(), false).untracks());
        rules["nftables"][2]["chain"]["prio"] = Value::from(-300);
        assert!(read(&rules, &packet(), false).untracks());
    }
}
