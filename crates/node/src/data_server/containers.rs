//! Services whose server is in a container (`relay_to`): the daemon listens in its place and relays.

mod follow;

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddrV4,
    sync::Arc,
};

use anyhow::{Context, Result};
use baton_agent::{container, relay::Counters};
use tracing::info;

use crate::owned_task::OwnedTask;

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

#[cfg(test)]
mod tests {
    use baton_agent::Routing;

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
