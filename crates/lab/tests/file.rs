//! Lab files, good and bad: what is read from them, and what is said about them.

use baton_lab::{Lab, Loss, Role, ServerKind, Thing};
use proptest::prelude::*;

/// The text of a lab file with these hosts, followed by `end`.
fn with(hosts: &str, end: &str) -> String {
    format!("name = \"t\"\n{hosts}\n{end}\n")
}

/// The text of a lab file with one host `a`, which has these keys besides its name.
fn host(keys: &str) -> String {
    with(&format!("[[host]]\nname = \"a\"\n{keys}"), "")
}

const ADDRESS: &str = "address = \"10.77.0.1/24\"\n";
const SERVICE: &str = "[[config.service]]\nname = \"web\"\naddress = \"10.77.0.100\"\nport = 80";
const NODES: &str = r#"
[[host]]
name = "cs1"
address = "10.77.0.2/24"
roles = ["cs"]
run = ["node"]
[[host]]
name = "ds1"
address = "10.77.0.11/24"
roles = ["ds"]
run = ["node", "nginx"]
"#;

#[test]
fn every_key_is_read() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::parse(&host(
        r#"
        address = ["10.77.0.11/24", "fd77::11/64"]
        roles = ["cs", "ds"]
        weight = 7
        cpu = 0.5
        link = { rate = "1gbit", loss = 0.01, mtu = 1400 }
        run = [
            "nginx",
            { server = "apache", port = 8080, workers = 4 },
            { server = "goserver", port = 8081, mptcp = false },
            { command = ["/usr/bin/env", "sleep", "9"], name = "nap", port = 99 },
            { command = ["/usr/bin/yes"] },
        ]"#,
    ))?;
    let a = lab.host("a").ok_or("no host")?;
    assert_eq!(a.address().to_string(), "10.77.0.11");
    assert_eq!(a.addresses.len(), 2);
    assert!(a.is_cs() && a.is_node() && a.has_ipv6());
    assert_eq!(a.roles, [Role::Cs, Role::Ds]);
    assert_eq!(a.weight, 7);
    assert_eq!(a.cpu.map(|cpu| cpu.share()), Some(0.5));
    assert_eq!(a.link.rate.map(|rate| rate.bits()), Some(1_000_000_000));
    assert_eq!(a.link.loss, Loss::new(0.01)?);
    assert_eq!(a.link.mtu.map(|mtu| mtu.bytes()), Some(1400));
    let names: Vec<&str> = a.run.iter().map(Thing::name).collect();
    assert_eq!(names, ["nginx", "apache", "goserver", "nap", "yes"]);
    let ports: Vec<Option<u16>> = a
        .run
        .iter()
        .map(|one| one.port().map(|p| p.number()))
        .collect();
    assert_eq!(ports, [Some(80), Some(8080), Some(8081), Some(99), None]);
    let Some(Thing::Server(go)) = a.thing("goserver") else {
        return Err("no goserver".into());
    };
    assert_eq!((go.kind, go.mptcp), (ServerKind::Go, false));
    Ok(())
}

#[test]
fn what_is_not_said_has_a_default() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::parse(&host(&format!("{ADDRESS}run = [\"goserver\"]")))?;
    let a = lab.host("a").ok_or("no host")?;
    assert!(!a.is_node());
    assert_eq!(
        (a.weight, a.cpu, a.link),
        (1, None, baton_lab::Link::default())
    );
    let Some(Thing::Server(go)) = a.thing("goserver") else {
        return Err("no goserver".into());
    };
    assert_eq!((go.port.number(), go.workers, go.mptcp), (80, 2, true));
    Ok(())
}

#[test]
fn a_node_may_have_several_interfaces() -> Result<(), Box<dyn std::error::Error>> {
    let port = "[[host.port]]\nlan = \"private\"\naddress = \"10.78.0.1/24\"";
    let router = Lab::parse(&host(&format!("{ADDRESS}{port}")))?;
    let router = router.host("a").ok_or("no host")?;
    assert!(router.is_router());
    let key = "roles = [\"ds\"]\nnode_address = \"10.78.0.1\"\n";
    let node = Lab::parse(&host(&format!("{ADDRESS}{key}{port}")))?;
    let node = node.host("a").ok_or("no host")?;
    assert!(!node.is_router(), "it forwards nothing");
    assert_eq!(node.interfaces(), ["eth0", "eth1"]);
    assert_eq!(node.address().to_string(), "10.78.0.1");
    Ok(())
}

#[test]
fn the_labs_of_this_repository_are_right() -> Result<(), Box<dyn std::error::Error>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let lab = Lab::parse(&std::fs::read_to_string(&path)?)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            assert_eq!(path.file_stem(), Some(lab.name().as_str().as_ref()));
            seen += 1;
        }
    }
    assert!(seen >= 3, "{seen}");
    Ok(())
}

/// Files with one wrong line, each as: what is wrong | the line, in a host's table | what the error must name | …
const BAD_LINES: &str = r#"
unknown key | adress = 1 | adress | line 5
unknown key of a link | link = { los = 0.1 } | los | line 5
an address twice on a host | address = ["10.1.0.1/8", "10.1.0.1/8"] | already
an empty list of addresses | address = [] | no address
an address that is a number | address = 7 | 10.77.0.1/24
no prefix | address = "10.77.0.1" | no prefix | 10.77.0.1/24 | line 4
a prefix too long | address = "10.77.0.1/33" | 1 to 32
a prefix of zero | address = "10.77.0.1/0" | 1 to 32
the network itself | address = "10.77.0.0/24" | network's own
the broadcast address | address = "10.77.0.255/24" | broadcast
loopback | address = "127.0.0.1/8" | not an address a host can have
multicast | address = "224.0.0.1/8" | not an address a host can have
unspecified | address = "::/64" | not an address a host can have
no address at all | address = "ten/24" | not an address with a prefix
an unknown role | roles = ["lb"] | lb | line 5
a role twice | roles = ["ds", "ds"] | twice | line 5
a weight too great | weight = 256 | 256 | line 5
loss above 1 | link = { loss = 1.5 } | 1.5 | 0.01 for one in a hundred
loss below 0 | link = { loss = -0.1 } | -0.1
loss is no number | link = { loss = nan } | NaN
a rate without a unit | link = { rate = "100" } | 100 | 1gbit
a rate of zero | link = { rate = "0gbit" } | 0gbit
a rate beyond all | link = { rate = "99999999999999999gbit" } | 100gbit
an mtu too small | link = { mtu = 576 } | 1280
a cpu of zero | cpu = 0 | 0.01
an unknown server | run = ["ngnix"] | ngnix | apache | command | line 5
a server that is a number | run = [7] | nginx | line 5
a table that runs nothing | run = [{ port = 80 }] | `server` or `command`
a table that runs two | run = [{ server = "nginx", command = ["x"] }] | `server` or `command`
a command without words | run = [{ command = [] }] | empty
a command with a zero byte | run = [{ command = ["a\u0000"] }] | zero byte
a command of unknown name | run = [{ command = ["./"] }] | `name`
a name that leads out | run = [{ command = ["x"], name = "../x" }] | ../x
port 0 | run = [{ server = "nginx", port = 0 }] | port 0
no workers | run = [{ server = "nginx", workers = 0 }] | 1 to 64
workers of a command | run = [{ command = ["x"], workers = 2 }] | workers
mptcp of nginx | run = [{ server = "nginx", mptcp = true }] | goserver
a port twice | run = ["nginx", "apache"] | port 80 | another `port`
a thing twice | run = ["nginx", "nginx"] | nginx runs on a already
a node without a role | run = ["node"] | roles | line 5
"#;

/// Each case has what is wrong, the file, and what the error must name.
#[test]
fn bad_files_are_refused_with_reasons() {
    let also = |keys: &str| host(&format!("{ADDRESS}{keys}"));
    let two = |first: &str, second: &str| with(&format!("{first}\n{second}"), "");
    let b = "[[host]]\nname = \"b\"\n";
    let mut table: Vec<(&str, String, Vec<&str>)> = vec![
        ("nothing", String::new(), vec!["name"]),
        ("not TOML", "name = ".into(), vec!["line 1"]),
        (
            "no hosts",
            "name = \"t\"".into(),
            vec!["no hosts", "[[host]]"],
        ),
        (
            "unknown key at the top",
            with("nome = 1", ""),
            vec!["nome", "line 2"],
        ),
        (
            "unknown key of config",
            with(NODES, "[config.local]"),
            vec!["local"],
        ),
        (
            "lab name in capitals",
            "name = \"Split\"".into(),
            vec!["Split", "a-z"],
        ),
        (
            "lab name too long",
            format!("name = \"{}\"", "a".repeat(33)),
            vec!["33 bytes", "shorten"],
        ),
        (
            "lab name leads out",
            "name = \"../x\"".into(),
            vec!["../x", "line 1"],
        ),
        (
            "host name too long",
            two("[[host]]\nname = \"a123456789012345\"", ADDRESS),
            vec!["15"],
        ),
        (
            "host name with a slash",
            two("[[host]]\nname = \"a/b\"", ADDRESS),
            vec!["a/b", "line 3"],
        ),
        (
            "host name empty",
            two("[[host]]\nname = \"\"", ADDRESS),
            vec!["line 3"],
        ),
        (
            "host called bridge",
            two("[[host]]\nname = \"bridge\"", ADDRESS),
            vec!["bridge"],
        ),
        (
            "host called as the bridge",
            two("[[host]]\nname = \"br0\"", ADDRESS),
            vec!["br0"],
        ),
        (
            "a name twice",
            two(
                &format!("[[host]]\nname = \"b\"\n{ADDRESS}"),
                &format!("{b}address = \"10.77.0.2/24\""),
            ),
            vec!["b exists already", "line 7"],
        ),
        (
            "an address twice",
            two(
                &format!("[[host]]\nname = \"a\"\n{ADDRESS}"),
                &format!("{b}{ADDRESS}"),
            ),
            vec!["10.77.0.1", "of a already", "line 8"],
        ),
        (
            "another network",
            two(
                &format!("[[host]]\nname = \"a\"\n{ADDRESS}"),
                &format!("{b}address = \"10.78.0.2/24\""),
            ),
            vec!["10.78.0.2/24", "10.77.0.1/24", "line 8"],
        ),
        (
            "another network on a named LAN",
            two(
                &format!("[[host]]\nname = \"a\"\nlan = \"x\"\n{ADDRESS}"),
                &format!("{b}lan = \"x\"\naddress = \"10.78.0.2/24\""),
            ),
            vec!["10.78.0.2/24", "10.77.0.1/24"],
        ),
        (
            "a gateway that nobody is",
            host(&format!("{ADDRESS}\ngateway = \"10.77.0.254\"")),
            vec!["nobody on the LAN", "10.77.0.254"],
        ),
        (
            "a gateway that is a node",
            host(&format!(
                "{ADDRESS}gateway = \"10.77.0.2\"\n[[host]]\nname = \"b\"\naddress = \"10.77.0.2/24\"\n\
                 roles = [\"ds\"]\n[[host.port]]\nlan = \"x\"\naddress = \"10.78.0.2/24\""
            )),
            vec!["b is a node", "without roles"],
        ),
        (
            "a node address of a client",
            host(&format!("{ADDRESS}node_address = \"10.77.0.1\"")),
            vec!["a is no node", "add roles"],
        ),
        (
            "a node address that it does not have",
            host(&format!(
                "{ADDRESS}roles = [\"ds\"]\nnode_address = \"10.77.0.2\""
            )),
            vec!["10.77.0.2", "name one of its own"],
        ),
        (
            "a gateway with one interface",
            two(
                &format!("[[host]]\nname = \"a\"\n{ADDRESS}"),
                &format!("{b}address = \"10.77.0.2/24\"\ngateway = \"10.77.0.1\""),
            ),
            vec!["forwards nothing"],
        ),
        ("no address", host(""), vec!["address"]),
        (
            "nodes without config",
            with(NODES, ""),
            vec!["[config]", "line 7"],
        ),
        (
            "a key in the file",
            with(NODES, &format!("config.cluster.key = \"aa\"\n{SERVICE}")),
            vec!["key"],
        ),
        (
            "an unknown key of baton.toml",
            with(NODES, &format!("{SERVICE}\npolicies = 1")),
            vec!["policies"],
        ),
        (
            "a cluster address that is a host's",
            with(NODES, &SERVICE.replace("10.77.0.100", "10.77.0.2")),
            vec!["10.77.0.2"],
        ),
    ];
    table.extend(BAD_LINES.trim().lines().map(|line| {
        let mut parts = line.split('|').map(str::trim);
        let (what, keys) = (
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default(),
        );
        let is_address = keys.starts_with("address");
        let file = if is_address { host(keys) } else { also(keys) };
        (what, file, parts.collect())
    }));
    let mut wrong = Vec::new();
    for (what, file, must_name) in table {
        match Lab::parse(&file) {
            Ok(_) => wrong.push(format!("{what}: was taken")),
            Err(error) => {
                let text = error.to_string();
                for name in must_name {
                    if !text.contains(name) {
                        wrong.push(format!("{what}: does not say {name:?} but\n{text}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn config_goes_with_nodes() -> Result<(), baton_lab::Error> {
    Lab::parse(&with(NODES, SERVICE)).map(drop)
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = Lab::parse(&text);
    }

    #[test]
    fn any_part_of_a_file_put_anywhere_is_read_or_refused(
        from in 0..800_usize, length in 0..60_usize, to in 0..800_usize, with_text in "[\\[\\]{}=\"a-z0-9./-]{0,8}"
    ) {
        let file = with(NODES, SERVICE);
        let at = |n: usize| n.min(file.len()); // All of it is ASCII.
        let (from, end, to) = (at(from), at(from + length), at(to));
        let mut text = file.clone();
        text.insert_str(to, &file[from..end.max(from)]);
        text.insert_str(to / 2, &with_text);
        let _ = Lab::parse(&text);
    }

    #[test]
    fn any_address_is_read_or_refused(address in any::<u128>(), v4 in any::<u32>(), prefix in 0..200_u8) {
        let v6 = std::net::Ipv6Addr::from_bits(address);
        let v4 = std::net::Ipv4Addr::from_bits(v4);
        for text in [format!("{v6}/{prefix}"), format!("{v4}/{prefix}")] {
            if let Ok(lab) = Lab::parse(&host(&format!("address = \"{text}\""))) {
                prop_assert_eq!(lab.hosts()[0].addresses[0].to_string(), text);
            }
        }
    }
}
