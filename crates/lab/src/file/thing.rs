//! The things that run on a host: its node, web servers, other programs.

use std::fmt;
use std::net::Ipv4Addr;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::names::ThingName;
use super::values::Port;

/// One thing that runs on a host. In the file it is a name, `"nginx"`, or a table with further settings:
/// `{ server = "nginx", port = 8080, workers = 4 }`, `{ command = ["iperf3", "-s"], port = 5201 }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thing {
    /// `baton node`, with a configuration generated from the lab file.
    Node,
    /// A web server with the lab's pages.
    Server(Server),
    /// Any other program.
    Program(Program),
}

/// A web server. All of them serve the same pages: see [`crate::servers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    /// The server program.
    pub kind: ServerKind,
    /// The port where it listens, on every address. Default: 80.
    pub port: Port,
    /// The number of worker processes, 1 to 64. Default: 2. The Go server always has one process.
    pub workers: u8,
    /// The server's own address, if it runs in a container: a network namespace behind a bridge `docker0` of the host.
    /// The host has 172.17.0.1/16 on that bridge, and forwards packets.
    pub container: Option<Ipv4Addr>,
    /// Whether it speaks TLS, with a certificate of its own that names the host. This counts only for nginx.
    pub tls: bool,
    /// Whether it listens with MPTCP, as Go programs do by default. This counts only for the Go server.
    pub mptcp: bool,
}

/// The web servers the lab can set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Debian's nginx-light.
    Nginx,
    /// Debian's apache2 with the event MPM.
    Apache,
    /// Go's net/http in a small program of the lab's own.
    Go,
}

/// A program that the lab knows nothing about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name in logs and commands. Default: the program's file name.
    pub name: ThingName,
    /// The program. A name without `/` is looked for in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The port where something accepts TCP connections once the program is ready. `None`: it is ready once started.
    pub port: Option<Port>,
}

impl Thing {
    /// The thing's name in logs and commands.
    pub fn name(&self) -> &str {
        match self {
            Thing::Node => "node",
            Thing::Server(server) => server.kind.name(),
            Thing::Program(program) => program.name.as_str(),
        }
    }

    /// The address of its container, if it runs in one.
    pub fn container(&self) -> Option<Ipv4Addr> {
        match self {
            Thing::Server(server) => server.container,
            _ => None,
        }
    }

    /// The port where it listens, if that is known.
    pub fn port(&self) -> Option<Port> {
        match self {
            Thing::Node => None,
            Thing::Server(server) => Some(server.port),
            Thing::Program(program) => program.port,
        }
    }
}

impl ServerKind {
    const ALL: [ServerKind; 3] = [ServerKind::Nginx, ServerKind::Apache, ServerKind::Go];

    /// The server's name in the lab file.
    pub fn name(self) -> &'static str {
        match self {
            ServerKind::Nginx => "nginx",
            ServerKind::Apache => "apache",
            ServerKind::Go => "goserver",
        }
    }
}

impl<'de> Deserialize<'de> for Thing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrTable)
    }
}

/// The table form of a thing.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    server: Option<String>,
    workers: Option<u8>,
    tls: Option<bool>,
    mptcp: Option<bool>,
    container: Option<Ipv4Addr>,
    command: Option<Vec<String>>,
    name: Option<ThingName>,
    port: Option<Port>,
}

struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = Thing;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"nginx\", or a table with `server` or `command`")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Thing, E> {
        if name == "node" {
            return Ok(Thing::Node);
        }
        server(name, Table::default()).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Thing, A::Error> {
        let mut table = Table::deserialize(MapAccessDeserializer::new(map))?;
        let thing = match (table.server.take(), table.command.take()) {
            (Some(name), None) => server(&name, table),
            (None, Some(words)) => program(words, table),
            _ => Err("say either `server` or `command`: what is to run?".to_owned()),
        };
        thing.map_err(A::Error::custom)
    }
}

fn server(name: &str, table: Table) -> Result<Thing, String> {
    let Some(kind) = ServerKind::ALL.into_iter().find(|kind| kind.name() == name) else {
        return Err(format!(
            "{name:?} is not known: there are \"node\", \"nginx\", \"apache\", \"goserver\"; \
             write anything else as {{ command = [\"program\", \"argument\"] }}"
        ));
    };
    if table.name.is_some() {
        return Err("`name` is for commands: a server is called what it is".to_owned());
    }
    if table.tls.is_some() && kind != ServerKind::Nginx {
        return Err(format!("`tls` is for nginx: {name} speaks plain HTTP"));
    }
    if table.mptcp.is_some() && kind != ServerKind::Go {
        return Err(format!(
            "`mptcp` is for goserver: {name} listens with plain TCP"
        ));
    }
    if let Some(address) = table.container
        && (address.octets()[..2] != [172, 17] || address == Ipv4Addr::new(172, 17, 0, 1))
    {
        return Err(format!(
            "the container's address {address} is not behind docker0: write one of 172.17.0.0/16 other than \
             172.17.0.1"
        ));
    }
    let workers = table.workers.unwrap_or(2);
    if !(1..=64).contains(&workers) {
        return Err(format!("{workers} workers: write 1 to 64"));
    }
    Ok(Thing::Server(Server {
        kind,
        port: table.port.unwrap_or(Port::HTTP),
        workers,
        container: table.container,
        tls: table.tls.unwrap_or(false),
        mptcp: table.mptcp.unwrap_or(true),
    }))
}

fn program(words: Vec<String>, table: Table) -> Result<Thing, String> {
    let is_server = table.workers.is_some() || table.tls.is_some() || table.mptcp.is_some();
    if is_server || table.container.is_some() {
        return Err(
            "`workers`, `tls`, `mptcp` and `container` are for servers: leave them out of a command"
                .to_owned(),
        );
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("a command cannot hold a zero byte".to_owned());
    }
    let mut words = words.into_iter();
    let Some(program) = words.next().filter(|program| !program.is_empty()) else {
        return Err("`command` is empty: name the program to run".to_owned());
    };
    let name = match table.name {
        Some(name) => name,
        None => program
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned()
            .try_into()
            .map_err(|why| format!("{why}; give the command a `name`"))?,
    };
    Ok(Thing::Program(Program {
        name,
        program,
        arguments: words.collect(),
        port: table.port,
    }))
}
