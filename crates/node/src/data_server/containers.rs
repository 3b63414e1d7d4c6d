//! Services whose server is in a container (`relay_to`): the daemon listens in its place and relays.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddrV4,
    sync::Arc,
};

use anyhow::{Context, Result};
use baton_agent::{Routing, container, relay::Counters};
use baton_config::Service;
use tracing::{info, warn};

use crate::{daemon::Daemon, owned_task::OwnedTask, tables::services_with_places};

/// The relays that run, by service.
#[derive(Default)]
pub struct Containers {
    running: HashMap<SocketAddrV4, Running>,
    /// The counters of all these relays together.
    pub counters: Arc<Counters>,
    /// The interfaces to the containers, as the dataplane was last told.
    interfaces: BTreeSet<u32>,
}

struct Running {
    server: SocketAddrV4,
    /// Ends with this.
    _task: OwnedTask,
}

impl Containers {
    /// Relays exactly these services from now on, each to its server. Relays that did not change go on.
    fn follow(&mut self, wanted: &HashMap<SocketAddrV4, SocketAddrV4>) -> Result<()> {
        self.running
            .retain(|service, running| wanted.get(service) == Some(&running.server));
        for (&service, &server) in wanted {
            if self.running.contains_key(&service) {
                continue;
            }
            let relay = container::relay(service, server, Arc::clone(&self.counters));
            let relay = relay.with_context(|| {
                format!(
                    "with relay_to the daemon listens at {service} itself: end what listens there, or, if \
                     that is docker-proxy, publish the container's port at this node's own address only \
                     (docker run -p ADDRESS:PORT:PORT) or not at all"
                )
            })?;
            info!(%service, %server, "relaying to a server in a container");
            let running = Running {
                server,
                _task: OwnedTask::spawn(relay.run()),
            };
            self.running.insert(service, running);
        }
        Ok(())
    }

    /// Whether no relay runs.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}

impl Daemon {
    /// Starts and ends relays, so that exactly those run that the configuration asks for.
    pub(crate) async fn relay_to_containers(&mut self) -> Result<()> {
        let name = &self.local.me.name;
        let server_of = |(at, service): (SocketAddrV4, &Service)| {
            Some((at, service.relay_to.of(name.as_str())?))
        };
        let of_node = services_with_places(self.local.config.services_of(name))?;
        let wanted: HashMap<_, _> = (of_node.into_iter().chain(self.deconfigured.services()))
            .filter_map(server_of)
            .collect();
        if !wanted.is_empty() {
            Routing::default().keep_marked(&mut self.host).await?;
        }
        if let Some(server) = &mut self.data_server {
            server.containers.follow(&wanted)?;
        }
        self.find_containers().await;
        Ok(())
    }

    /// Looks by which interfaces the containers are reached now. A container's network may start after this node, end,
    /// and start again as another interface.
    pub(crate) async fn find_containers(&mut self) {
        let Some(server) = &mut self.data_server else {
            return;
        };
        let mut interfaces = BTreeSet::new();
        for running in server.containers.running.values() {
            let ip = *running.server.ip();
            match self.local.netlink.interface_to(ip.into()).await {
                Ok(index) => interfaces.extend(index),
                Err(error) => tracing::debug!("{error}"),
            }
        }
        if interfaces == server.containers.interfaces {
            return;
        }
        match self.dataplane.keep_relay_answers(&interfaces) {
            Ok(()) => server.containers.interfaces = interfaces,
            Err(error) => warn!("cannot bring the answers of containers to the relay: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_mean_the_same_marks() {
        assert_eq!(baton_abi::MARK_RELAY_LOCAL, Routing::default().mark);
        assert_eq!(
            baton_abi::MARK_RELAY_SOCKET,
            baton_agent::container::SOCKET_MARK
        );
    }

    #[tokio::test]
    async fn relays_follow_the_configuration() {
        let free = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
            match listener.local_addr() {
                Ok(std::net::SocketAddr::V4(at)) => at,
                other => panic!("bound to IPv4: {other:?}"),
            }
        };
        let (service, server): (SocketAddrV4, SocketAddrV4) =
            (free(), "192.0.2.1:80".parse().expect("an address"));
        let mut containers = Containers::default();
        assert!(containers.is_empty());
        containers
            .follow(&HashMap::from([(service, server)]))
            .expect("the port is free");
        let reached = std::net::TcpStream::connect(service);
        assert!(reached.is_ok(), "{reached:?}");
        assert!(
            std::net::TcpListener::bind(service).is_err(),
            "the relay has the port"
        );

        // If another program has the port, the error says so.
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let at = match taken.local_addr() {
            Ok(std::net::SocketAddr::V4(at)) => at,
            other => panic!("bound to IPv4: {other:?}"),
        };
        let error = containers.follow(&HashMap::from([(service, server), (at, server)]));
        let error = format!("{:#}", error.expect_err("the port is taken"));
        assert!(error.contains("docker-proxy"), "{error}");

        containers.follow(&HashMap::new()).expect("nothing to bind");
        assert!(containers.is_empty());
    }
}
