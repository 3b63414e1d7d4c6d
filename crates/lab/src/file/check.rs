//! From the file's text to a [`Lab`]: what no single value can show to be wrong.

use std::collections::HashSet;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{Config, Cpu, Host, HostAddress, HostName, Lab, LabName, Link, Role, Thing};
use crate::config;
use crate::error::{Error, Result};

/// The file as it is written, each value right by itself.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: LabName,
    #[serde(default, rename = "host")]
    hosts: Vec<WrittenHost>,
    config: Option<Config>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHost {
    name: Spanned<HostName>,
    address: Spanned<Addresses>,
    roles: Option<Spanned<Vec<Role>>>,
    #[serde(default = "one")]
    weight: u8,
    #[serde(default)]
    link: Link,
    cpu: Option<Cpu>,
    #[serde(default)]
    run: Vec<Spanned<Thing>>,
}

/// One address, or several in a list.
struct Addresses(Vec<HostAddress>);

pub(super) fn parse(text: &str) -> Result<Lab> {
    let written: Written = toml::from_str(text)?;
    let checker = Checker { text };
    if written.hosts.is_empty() {
        return Err(checker.error(text.len(), "the lab has no hosts: add a [[host]]"));
    }
    checker.names(&written.hosts)?;
    checker.addresses(&written.hosts)?;
    for host in &written.hosts {
        checker.roles(host)?;
        checker.things(host, written.config.is_some())?;
    }
    let lab = Lab {
        name: written.name,
        hosts: written.hosts.into_iter().map(Host::from).collect(),
        config: written.config,
        source: text.to_owned(),
    };
    config::check(&lab)?;
    Ok(lab)
}

/// Knows the text, to turn a place in it into a line.
struct Checker<'a> {
    text: &'a str,
}

impl Checker<'_> {
    fn names(&self, hosts: &[WrittenHost]) -> Result<()> {
        let mut seen = HashSet::new();
        for host in hosts {
            if !seen.insert(host.name.get_ref()) {
                let what = format!("a host {} exists already: rename one", host.name.get_ref());
                return Err(self.error(host.name.span().start, what));
            }
        }
        Ok(())
    }

    fn addresses(&self, hosts: &[WrittenHost]) -> Result<()> {
        let mut seen: Vec<(HostAddress, &HostName)> = Vec::new();
        for host in hosts {
            let at = host.address.span().start;
            if host.address.get_ref().0.is_empty() {
                return Err(self.error(at, format!("{} has no address", host.name.get_ref())));
            }
            for address in &host.address.get_ref().0 {
                if let Some((_, other)) = seen.iter().find(|(one, _)| one.ip() == address.ip()) {
                    let what = format!("{} is the address of {other} already", address.ip());
                    return Err(self.error(at, format!("{what}: give each host its own")));
                }
                self.one_network(at, address, &seen)?;
                seen.push((*address, host.name.get_ref()));
            }
        }
        Ok(())
    }

    /// All hosts are on one LAN, so the addresses of a family share a network.
    fn one_network(
        &self,
        at: usize,
        address: &HostAddress,
        seen: &[(HostAddress, &HostName)],
    ) -> Result<()> {
        let same_family = seen
            .iter()
            .find(|(one, _)| one.ip().is_ipv4() == address.ip().is_ipv4());
        match same_family {
            Some((one, other)) if !one.shares_network_with(address) => {
                let what = format!(
                    "{address} is not in the network of {other} ({one}): \
                     all hosts are on one LAN, so use its prefix"
                );
                Err(self.error(at, what))
            }
            _ => Ok(()),
        }
    }

    fn roles(&self, host: &WrittenHost) -> Result<()> {
        match &host.roles {
            Some(roles) if has_twice(roles.get_ref()) => {
                let what = format!("{} has a role twice: remove one", host.name.get_ref());
                Err(self.error(roles.span().start, what))
            }
            _ => Ok(()),
        }
    }

    fn things(&self, host: &WrittenHost, config: bool) -> Result<()> {
        let mut names = HashSet::new();
        let mut ports = HashSet::new();
        let name = host.name.get_ref();
        for thing in &host.run {
            let at = thing.span().start;
            let thing = thing.get_ref();
            if !names.insert(thing.name()) {
                let what = format!("{} runs on {name} already", thing.name());
                return Err(self.error(at, format!("{what}: give a command another `name`")));
            }
            if let Some(port) = thing.port().filter(|port| !ports.insert(*port)) {
                let what = format!("port {} of {name} is taken already", port.number());
                return Err(self.error(at, format!("{what}: give one another `port`")));
            }
            if *thing == Thing::Node
                && host
                    .roles
                    .as_ref()
                    .is_none_or(|roles| roles.get_ref().is_empty())
            {
                let what = format!("{name} runs node but has no roles: add roles = [\"ds\"]");
                return Err(self.error(at, what));
            }
            if *thing == Thing::Node && !config {
                let what = "node needs a [config], with a [[config.service]] in it: add one";
                return Err(self.error(at, what));
            }
        }
        Ok(())
    }

    fn error(&self, at: usize, what: impl Into<String>) -> Error {
        let before = self.text.get(..at).unwrap_or(self.text);
        Error::LabFile {
            line: before.matches('\n').count() + 1,
            what: what.into(),
        }
    }
}

fn has_twice(roles: &[Role]) -> bool {
    (1..roles.len()).any(|at| roles[..at].contains(&roles[at]))
}

impl From<WrittenHost> for Host {
    fn from(host: WrittenHost) -> Host {
        Host {
            name: host.name.into_inner(),
            addresses: host.address.into_inner().0,
            roles: host.roles.map(Spanned::into_inner).unwrap_or_default(),
            weight: host.weight,
            link: host.link,
            cpu: host.cpu,
            run: host.run.into_iter().map(Spanned::into_inner).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrSeveral)
    }
}

struct OneOrSeveral;

impl<'de> Visitor<'de> for OneOrSeveral {
    type Value = Addresses;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as \"10.77.0.1/24\", or a list of them")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Addresses, E> {
        let address = HostAddress::try_from(text.to_owned()).map_err(E::custom)?;
        Ok(Addresses(vec![address]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Addresses, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list)).map(Addresses)
    }
}

fn one() -> u8 {
    1
}
