//! Turns the file's text into a [`Lab`], and checks what no single value can show to be wrong.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{
    Config, Cpu, Host, HostAddress, HostName, HostPort, Lab, LabName, LanName, Link, Role, Thing,
};
use crate::config;
use crate::error::{Error, Result};

/// The file as it is written. Each value is right by itself, but they may contradict each other.
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
    node_address: Option<Spanned<IpAddr>>,
    lan: Option<LanName>,
    gateway: Option<Spanned<IpAddr>>,
    #[serde(default, rename = "port")]
    ports: Vec<WrittenPort>,
    roles: Option<Spanned<Vec<Role>>>,
    #[serde(default = "one")]
    weight: u8,
    #[serde(default)]
    link: Link,
    cpu: Option<Cpu>,
    #[serde(default)]
    own_clock: bool,
    #[serde(default)]
    own_keys: bool,
    #[serde(default)]
    run: Vec<Spanned<Thing>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPort {
    lan: Option<LanName>,
    address: Spanned<Addresses>,
}

/// One address, or several in a list.
struct Addresses(Vec<HostAddress>);

impl Lab {
    /// Reads a lab file.
    ///
    /// # Errors
    /// [`Error::Syntax`] or [`Error::LabFile`], with the line and what to write instead.
    pub fn parse(text: &str) -> Result<Lab> {
        let written: Written = toml::from_str(text)?;
        let checker = Checker { text };
        if written.hosts.is_empty() {
            return Err(checker.error(text.len(), "the lab has no hosts: add a [[host]]"));
        }
        checker.names(&written.hosts)?;
        checker.addresses(&written.hosts)?;
        for host in &written.hosts {
            checker.roles(host)?;
            checker.node_address(host)?;
            checker.gateway(host, &written.hosts)?;
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
}

/// An address that a host has already.
struct Seen<'a> {
    address: HostAddress,
    lan: Option<&'a LanName>,
    host: &'a HostName,
}

impl WrittenHost {
    /// The LAN and the addresses of each interface of the host, the first interface first.
    fn interfaces(&self) -> impl Iterator<Item = (Option<&LanName>, &Spanned<Addresses>)> {
        let ports = self.ports.iter();
        std::iter::once((self.lan.as_ref(), &self.address))
            .chain(ports.map(|port| (port.lan.as_ref(), &port.address)))
    }
}

/// The checks. They have the text, to turn a place in it into a line.
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
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for host in hosts {
            for (lan, addresses) in host.interfaces() {
                let at = addresses.span().start;
                if addresses.get_ref().0.is_empty() {
                    let what = format!("{} has no address", host.name.get_ref());
                    return Err(self.error(at, what));
                }
                for address in &addresses.get_ref().0 {
                    if let Some(seen) = seen.iter().find(|one| one.address.ip() == address.ip()) {
                        let (ip, other) = (address.ip(), seen.host);
                        let what = format!("{ip} is the address of {other} already");
                        return Err(self.error(at, format!("{what}: give each host its own")));
                    }
                    self.one_network(at, address, lan, &seen)?;
                    seen.push(Seen {
                        address: *address,
                        lan,
                        host: host.name.get_ref(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks that the addresses of one family on a LAN share a network.
    fn one_network(
        &self,
        at: usize,
        address: &HostAddress,
        lan: Option<&LanName>,
        seen: &[Seen<'_>],
    ) -> Result<()> {
        let same_family = seen
            .iter()
            .find(|one| one.lan == lan && one.address.ip().is_ipv4() == address.ip().is_ipv4());
        match same_family {
            Some(one) if !one.address.shares_network_with(address) => {
                let (other, of_other) = (one.host, one.address);
                let what = format!(
                    "{address} is not in the network of {other} ({of_other}): \
                     both are on one LAN, so use its prefix"
                );
                Err(self.error(at, what))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a host with `node_address` is a node, and that one of its interfaces has that address.
    fn node_address(&self, host: &WrittenHost) -> Result<()> {
        let (Some(address), name) = (&host.node_address, host.name.get_ref()) else {
            return Ok(());
        };
        let at = address.span().start;
        if host
            .roles
            .as_ref()
            .is_none_or(|roles| roles.get_ref().is_empty())
        {
            let what =
                format!("{name} is no node, so it has no node_address: remove it, or add roles");
            return Err(self.error(at, what));
        }
        let mut all = host
            .interfaces()
            .flat_map(|(_, addresses)| &addresses.get_ref().0);
        if !all.any(|one| one.ip() == *address.get_ref()) {
            let what = format!("{name} does not have the address {}", address.get_ref());
            return Err(self.error(
                at,
                format!("{what}: name one of its own, without its prefix"),
            ));
        }
        Ok(())
    }

    /// Checks that a host on the same LAN has the address of the gateway, and forwards.
    fn gateway(&self, host: &WrittenHost, hosts: &[WrittenHost]) -> Result<()> {
        let Some(gateway) = &host.gateway else {
            return Ok(());
        };
        let is_there = |router: &&WrittenHost| {
            router.interfaces().any(|(lan, addresses)| {
                let mut addresses = addresses.get_ref().0.iter();
                lan == host.lan.as_ref() && addresses.any(|one| one.ip() == *gateway.get_ref())
            })
        };
        let at = gateway.span().start;
        match hosts.iter().find(is_there) {
            Some(node)
                if node
                    .roles
                    .as_ref()
                    .is_some_and(|roles| !roles.get_ref().is_empty()) =>
            {
                let what = format!("{} is a node, so it forwards nothing", node.name.get_ref());
                Err(self.error(at, format!("{what}: name a host without roles")))
            }
            Some(router) if !router.ports.is_empty() => Ok(()),
            Some(other) => {
                let what = format!(
                    "{} has one interface, so it forwards nothing",
                    other.name.get_ref()
                );
                Err(self.error(at, format!("{what}: give it a [[host.port]]")))
            }
            None => {
                let (name, gateway) = (host.name.get_ref(), gateway.get_ref());
                let what = format!("nobody on the LAN of {name} has the address {gateway}");
                Err(self.error(at, format!("{what}: name that of a router")))
            }
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
            if let Some(port) = thing
                .port()
                .filter(|port| !ports.insert((thing.container(), *port)))
            {
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
            node_address: host.node_address.map(Spanned::into_inner),
            lan: host.lan,
            gateway: host.gateway.map(Spanned::into_inner),
            ports: (host.ports.into_iter())
                .map(|port| HostPort {
                    lan: port.lan,
                    addresses: port.address.into_inner().0,
                })
                .collect(),
            roles: host.roles.map(Spanned::into_inner).unwrap_or_default(),
            weight: host.weight,
            link: host.link,
            cpu: host.cpu,
            own_clock: host.own_clock,
            own_keys: host.own_keys,
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
