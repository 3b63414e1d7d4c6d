//! The subject of the checks: this machine's node, or a machine of which no node is known.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use baton_config::{Config, Node, Roles};
use baton_dataplane::kernel::Part;

use super::servers::NamedService;
use crate::doctor::servers::relayed::Relayed;

/// What this machine is, or could be, as a node.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The roles of the node; if it is not known, both CS and DS, because it could have either.
    pub roles: Roles,
    /// The window scale that is announced to clients.
    pub window_scale: u8,
    /// The greatest difference of clocks that nodes accept.
    pub clock_window: Duration,
    /// The number of entries in the table of connections.
    pub flows: u32,
    /// The directory in which programs and maps are pinned.
    pub bpf_dir: PathBuf,
    /// This machine in its cluster; `None` if that is not known.
    pub placed: Option<Placed>,
}

/// A configuration, and the node in it that this machine is.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The file from which the configuration was read.
    pub file: PathBuf,
    /// The whole configuration.
    pub config: Config,
    /// This machine's node.
    pub me: Node,
}

impl Subject {
    /// A machine without a configuration. It gets the defaults of a configuration.
    pub fn unknown() -> Self {
        Self {
            roles: Roles::CS_AND_DS,
            window_scale: 7,
            clock_window: Duration::from_secs(10),
            flows: 1 << 20,
            bpf_dir: "/sys/fs/bpf/baton".into(),
            placed: None,
        }
    }

    /// A machine whose own node in this configuration is not known.
    pub fn of(config: &Config) -> Self {
        Self {
            roles: Roles::CS_AND_DS,
            window_scale: config.cluster.window_scale.shift(),
            clock_window: config.cluster.clock_window,
            flows: config.cs.flows.get(),
            bpf_dir: config.local.bpf_dir.clone(),
            placed: None,
        }
    }

    /// This machine as a node of a configuration.
    pub fn placed(placed: Placed) -> Self {
        let any = Self::of(&placed.config);
        Self {
            roles: placed.me.roles,
            placed: Some(placed),
            ..any
        }
    }

    /// The services that this machine relays to servers in containers.
    pub fn relayed(&self) -> Vec<Relayed> {
        let Some(Placed { config, me, .. }) = &self.placed else {
            return Vec::new();
        };
        let services = config.services_of(&me.name);
        let relayed = services.filter_map(|service| {
            let server = service.relay_to.of(me.name.as_str())?;
            Some((service.name.to_string(), server))
        });
        relayed.collect()
    }

    /// The groups of programs that the node loads.
    pub fn parts(&self) -> Vec<Part> {
        if self.roles.is_app() {
            return vec![Part::Sockets];
        }
        Part::of_roles(self.roles.bits().into())
    }

    /// The services for which this machine is a data server; `None` if they are not known.
    pub fn services(&self) -> Option<Vec<NamedService>> {
        let Placed { config, me, .. } = self.placed.as_ref()?;
        let services = config.services_of(&me.name);
        Some(
            services
                .map(|service| {
                    let at = SocketAddr::new(service.address.ip(), service.port.get());
                    (service.name.to_string(), at)
                })
                .collect(),
        )
    }
}

#[cfg(test)]
pub mod tests {
    pub use baton_config::example as config;
    use baton_net::{Adapter, Link};

    use super::*;

    /// An Ethernet card that is up.
    pub fn adapter(index: u32) -> Adapter {
        Adapter {
            index,
            name: format!("eth{index}"),
            ethernet: true,
            up: true,
            carrier: true,
            mtu: 1500,
            kind: None,
        }
    }

    /// An interface that is up. No node of [`config`] has its address.
    pub fn link(index: u32) -> Link {
        Link {
            index,
            name: format!("eth{index}"),
            mac: [2, 0, 0, 0, 0, 99],
            mtu: 1500,
            up: true,
        }
    }

    /// The node of this name in [`config`].
    pub fn placed(name: &str) -> Placed {
        let config = config();
        let me = config
            .node_named(name)
            .expect("there is such a node")
            .clone();
        Placed {
            file: "baton.toml".into(),
            config,
            me,
        }
    }

    #[test]
    fn defaults_are_those_of_a_configuration() {
        let (by_config, unknown) = (Subject::of(&config()), Subject::unknown());
        assert_eq!(by_config.window_scale, unknown.window_scale);
        assert_eq!(by_config.clock_window, unknown.clock_window);
        assert_eq!(by_config.flows, unknown.flows);
        assert_eq!(by_config.bpf_dir, unknown.bpf_dir);
    }

    #[test]
    fn programs_follow_from_roles() {
        let parts = |name| Subject::placed(placed(name)).parts();
        assert_eq!(parts("cs1"), [Part::ConnectionServer]);
        assert_eq!(parts("ds1"), [Part::DataServer]);
        assert_eq!(
            Subject::unknown().parts(),
            [Part::ConnectionServer, Part::DataServer]
        );
        let app = Subject {
            roles: Roles::APP,
            ..Subject::unknown()
        };
        assert_eq!(app.parts(), [Part::Sockets]);
    }

    #[test]
    fn services_of_a_data_server() {
        assert_eq!(Subject::unknown().services(), None);
        assert_eq!(Subject::placed(placed("cs1")).services(), Some(vec![]));
        let web = (
            "web".to_owned(),
            "192.0.2.100:80".parse().expect("an address"),
        );
        assert_eq!(Subject::placed(placed("ds1")).services(), Some(vec![web]));
    }
}
