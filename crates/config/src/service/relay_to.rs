//! `relay_to`: data servers whose server program is in a network namespace of its own, for example in a container.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;

use crate::reading::problem::Problem;
use crate::values::name::NodeName;

/// The addresses of a service's server programs, by data server. On a node that is not named the server is on the
/// node itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelayTo(BTreeMap<NodeName, SocketAddrV4>);

impl RelayTo {
    /// The address to which a node's daemon relays connections; `None` if a server on the node itself accepts them.
    pub fn of(&self, node: &str) -> Option<SocketAddrV4> {
        let (_, server) = self.0.iter().find(|(name, _)| name.as_str() == node)?;
        Some(*server)
    }

    /// The nodes that the table names, and the addresses of their servers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeName, &SocketAddrV4)> {
        self.0.iter()
    }

    /// Converts the table of the file.
    pub(crate) fn parse(_key: &str, raw: BTreeMap<String, String>) -> Result<Self, Problem> {
        let entry = |(name, text): (String, String)| {
            let server = server(&name, &text)?;
            Ok((name.parse()?, server))
        };
        Ok(Self(raw.into_iter().map(entry).collect::<Result<_, _>>()?))
    }
}

fn server(name: &str, text: &str) -> Result<SocketAddrV4, Problem> {
    let shown = text.escape_debug();
    let address: SocketAddrV4 = text.parse().map_err(|_| {
        Problem::new(
            format!("the server of {name} = \"{shown}\" is not an IPv4 address and a port"),
            "write the container's own address and the port inside it, like \"172.17.0.2:80\"",
        )
    })?;
    let ip = address.ip();
    if address.port() == 0 {
        return Err(Problem::new(
            format!("the server of {name} = \"{shown}\" has port 0"),
            "write the port on which the server listens inside its container",
        ));
    }
    if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
        return Err(Problem::new(
            format!("the server of {name} = \"{shown}\" is not in a container"),
            "write the container's own address; a server on the node itself needs no relay_to",
        ));
    }
    Ok(address)
}
