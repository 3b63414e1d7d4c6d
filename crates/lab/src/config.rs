//! Generates the baton.toml of a node from the hosts and the lab file's `[config]`.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_config::{NodeKeys, Source};
use toml::{Table, Value};

use crate::error::{Doing, Error, Result};
use crate::file::{Host, Lab, Thing};
use crate::state;

const BPF: &str = "/sys/fs/bpf/baton-lab";

/// The key that all nodes of a lab share: 32 bytes in hexadecimal digits, new at every `up`.
pub(crate) struct ClusterKey(String);

impl ClusterKey {
    pub fn random() -> Result<ClusterKey> {
        let path = "/dev/urandom";
        let mut bytes = [0; 32];
        std::fs::File::open(path)
            .and_then(|mut source| source.read_exact(&mut bytes))
            .doing(|| format!("read {path}"))?;
        Ok(ClusterKey(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }
}

/// Checks that a node will accept the baton.toml that is made for it. The files of all nodes differ only
/// in `[local]` and in the key, so this checks only one of them.
pub(crate) fn check(lab: &Lab) -> Result<()> {
    let Some(host) = lab
        .hosts
        .iter()
        .find(|host| host.run.contains(&Thing::Node))
    else {
        return Ok(());
    };
    let cluster = lab.config.iter().map(|config| &config.cluster);
    if cluster
        .into_iter()
        .any(|table| table.contains_key("key") || table.contains_key("key_file"))
    {
        let why = "the lab makes its own key at `up`: remove `key` and `key_file`";
        return Err(Error::Config(vec![why.to_owned()]));
    }
    let text = text(lab, host, &ClusterKey("5a".repeat(32)))?;
    let source = Source {
        path: Path::new("baton.toml"),
        text: &text,
        mode: None,
    };
    let no_files = |_: &Path| {
        Err(std::io::Error::other(
            "a lab file names no files; write the key",
        ))
    };
    match baton_config::Config::parse(source, no_files) {
        Ok(_) => Ok(()),
        Err(baton_config::Error::Invalid(findings)) => Err(Error::Config(
            findings.iter().map(|one| one.problem.to_string()).collect(),
        )),
        Err(other) => Err(Error::Config(vec![other.to_string()])),
    }
}

/// The directory in which the nodes of a lab pin their programs and maps.
pub(crate) fn lab_pins(lab: &Lab) -> PathBuf {
    Path::new(BPF).join(lab.name.as_str())
}

/// The directory in which one node pins its programs and maps.
pub(crate) fn pins(lab: &Lab, host: &Host) -> PathBuf {
    lab_pins(lab).join(host.name.as_str())
}

/// The path of a host's baton.toml, below the host's directory.
pub(crate) fn path(lab: &Lab, host: &Host) -> PathBuf {
    state::host_directory(&lab.name, host.name.as_str()).join("baton.toml")
}

/// The value of `key` for a host's node: the cluster's secret, or only the node's own keys.
fn key_of(lab: &Lab, host: &Host, key: &ClusterKey) -> Result<String> {
    if !host.own_keys {
        return Ok(key.0.clone());
    }
    let wrong = |what: String| Error::Config(vec![what]);
    let v4 = |host: &Host| match host.address() {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(_) => Err(wrong(format!(
            "{}: own_keys needs an IPv4 address",
            host.name
        ))),
    };
    let secret = key.0.parse().map_err(|error| wrong(format!("{error}")))?;
    let nodes = lab.hosts.iter().filter(|host| host.is_node());
    let all = nodes.map(v4).collect::<Result<Vec<_>>>()?;
    Ok(NodeKeys::new(&secret, None, v4(host)?, all).text(&[]))
}

/// The text of a host's baton.toml. In a `server_socket`, `{dir}` is the host's directory: all hosts have the same files.
pub(crate) fn text(lab: &Lab, host: &Host, key: &ClusterKey) -> Result<String> {
    let config = lab.config.clone().unwrap_or_default();
    let mut file = Table::new();
    let mut cluster = config.cluster;
    cluster.insert("key".into(), key_of(lab, host, key)?.into());
    file.insert("cluster".into(), cluster.into());
    file.insert("local".into(), local(lab, host).into());
    if let Some(cs) = config.cs {
        file.insert("cs".into(), cs.into());
    }
    if let Some(failover) = config.failover {
        file.insert("failover".into(), failover.into());
    }
    if let Some(forwarding) = config.forwarding {
        file.insert("forwarding".into(), forwarding.into());
    }
    let nodes = lab.hosts.iter().filter(|host| host.is_node());
    file.insert(
        "node".into(),
        Value::Array(nodes.map(|host| node(host).into()).collect()),
    );
    let mut services = config.service;
    for service in &mut services {
        if let Some(Value::String(socket)) = service.get_mut("server_socket") {
            let directory = state::host_directory(&lab.name, host.name.as_str());
            *socket = socket.replace("{dir}", &directory.display().to_string());
        }
    }
    file.insert("service".into(), services.into());
    // `Display` of a table is TOML; tables come after plain values at every level.
    Ok(file.to_string())
}

/// Writes a host's baton.toml, readable only by the owner, because it holds the key.
pub(crate) fn write(lab: &Lab, host: &Host, key: &ClusterKey) -> Result<()> {
    let path = path(lab, host);
    let text = text(lab, host, key)?;
    OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .doing(|| format!("write {}", path.display()))
}

fn local(lab: &Lab, host: &Host) -> Table {
    let run = state::host_directory(&lab.name, host.name.as_str());
    Table::from_iter([
        ("name".to_owned(), host.name.as_str().into()),
        (
            "bpf_dir".to_owned(),
            pins(lab, host).display().to_string().into(),
        ),
        ("run_dir".to_owned(), run.display().to_string().into()),
        // Every Debian system has this user.
        ("tls_user".to_owned(), "nobody".into()),
        // The address is inside the host's own namespace, so hosts do not collide.
        ("metrics".to_owned(), "127.0.0.1:9277".into()),
    ])
}

fn node(host: &Host) -> Table {
    let roles = host.roles.iter().map(|role| role.name().into());
    let mut node = Table::from_iter([
        ("name".to_owned(), host.name.as_str().into()),
        ("address".to_owned(), host.address().to_string().into()),
        ("interface".to_owned(), interface(host)),
        ("roles".to_owned(), Value::Array(roles.collect())),
    ]);
    if host.is_ds() {
        node.insert("weight".to_owned(), i64::from(host.weight).into());
    }
    if host.own_keys {
        node.insert("own_keys".to_owned(), true.into());
    }
    node
}

fn interface(host: &Host) -> Value {
    match &host.interfaces()[..] {
        [only] => only.as_str().into(),
        several => Value::Array(several.iter().map(|name| name.as_str().into()).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = r#"
        name = "t"
        host = [
            { name = "client", address = "10.77.0.1/24" },
            { name = "cs1", address = "10.77.0.2/24", roles = ["cs"], run = ["node"] },
            { name = "ds1", address = "10.77.0.11/24", roles = ["ds"], weight = 3, run = ["node"] },
        ]
        [config.cs]
        flows = 4096
        [[config.service]]
        name = "web"
        address = "10.77.0.100"
        port = 80
        [config.service.health]
        kind = "http"
    "#;

    #[test]
    fn a_node_gets_the_whole_cluster_and_its_own_name() -> Result<(), Box<dyn std::error::Error>> {
        let lab = Lab::parse(LAB)?;
        let key = ClusterKey::random()?;
        let file: Table = text(&lab, &lab.hosts[1], &key)?.parse()?;
        assert_eq!(file["local"]["name"].as_str(), Some("cs1"));
        assert_eq!(
            file["local"]["bpf_dir"].as_str(),
            Some("/sys/fs/bpf/baton-lab/t/cs1")
        );
        assert_eq!(
            file["local"]["run_dir"].as_str(),
            Some("/run/baton-lab/t/cs1")
        );
        assert_eq!(file["cluster"]["key"].as_str().map(str::len), Some(64));
        assert_eq!(file["cs"]["flows"].as_integer(), Some(4096));
        let nodes = file["node"].as_array().ok_or("no nodes")?;
        assert_eq!(nodes.len(), 2, "the client is no node");
        assert_eq!(nodes[1]["address"].as_str(), Some("10.77.0.11"));
        assert_eq!(nodes[1]["weight"].as_integer(), Some(3));
        assert_eq!(file["service"][0]["health"]["kind"].as_str(), Some("http"));
        Ok(())
    }

    #[test]
    fn a_node_has_all_its_interfaces() -> Result<(), Box<dyn std::error::Error>> {
        let card = "[[host.port]]\nlan = \"private\"\naddress = \"10.78.0.2/24\"\n";
        let text = r#"name = "t"
            [[host]]
            name = "cs1"
            address = "10.77.0.2/24"
            node_address = "10.78.0.2"
            roles = ["cs"]
            run = ["node"]
            CARD
            [[host]]
            name = "ds1"
            lan = "private"
            address = "10.78.0.11/24"
            roles = ["ds"]
            [config]
            service = [{ name = "web", address = "10.77.0.100", port = 80 }]
        "#;
        let lab = Lab::parse(&text.replace("CARD", card))?;
        let file: Table = self::text(&lab, &lab.hosts[0], &ClusterKey::random()?)?.parse()?;
        let nodes = file["node"].as_array().ok_or("no nodes")?;
        let both: Vec<Value> = vec!["eth0".into(), "eth1".into()];
        assert_eq!(nodes[0]["interface"], Value::Array(both));
        assert_eq!(nodes[0]["address"].as_str(), Some("10.78.0.2"));
        assert_eq!(nodes[1]["interface"].as_str(), Some("eth0"));
        Ok(())
    }

    #[test]
    fn a_host_with_its_own_keys_has_nothing_else() -> Result<(), Box<dyn std::error::Error>> {
        let lab = Lab::parse(&LAB.replace("weight = 3", "weight = 3, own_keys = true"))?;
        let key = ClusterKey::random()?;
        check(&lab)?;
        for (host, secret) in [(&lab.hosts[1], true), (&lab.hosts[2], false)] {
            let text = text(&lab, host, &key)?;
            assert_eq!(text.contains(&key.0), secret, "{}", host.name);
            let file: Table = text.parse()?;
            assert_eq!(file["node"][1]["own_keys"].as_bool(), Some(true));
            assert!(file["node"][0].get("own_keys").is_none());
        }
        Ok(())
    }

    #[test]
    fn each_host_has_its_own_sockets() -> Result<(), Box<dyn std::error::Error>> {
        let keys = r#"port = 443
            protocol = "tls"
            tls = "terminate"
            certificates = ["a.pem"]
            server_socket = "{dir}/nginx/proxy.sock"
        "#;
        let lab = Lab::parse(&LAB.replace("port = 80\n", keys))?;
        let file: Table = text(&lab, &lab.hosts[2], &ClusterKey::random()?)?.parse()?;
        assert_eq!(
            file["service"][0]["server_socket"].as_str(),
            Some("/run/baton-lab/t/ds1/nginx/proxy.sock")
        );
        Ok(())
    }

    #[test]
    fn keys_differ() -> Result<()> {
        assert_ne!(ClusterKey::random()?.0, ClusterKey::random()?.0);
        Ok(())
    }
}
