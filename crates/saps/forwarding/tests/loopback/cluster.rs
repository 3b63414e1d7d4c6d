//! An I/O server whose cluster addresses are 127.0.0.1 and ::1, and application nodes.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use baton_saps::{Agent, AgentSettings, IoServer, IoSettings, NetworkKind, PortPolicy};
use baton_wire::ClusterKey;
use tokio::net::TcpStream;

pub const BUFFER: u32 = 128 * 1024;
pub const NETWORKS: [NetworkKind; 2] = [NetworkKind::Tcp, NetworkKind::Quic];

pub struct Cluster {
    pub network: NetworkKind,
    pub io: Option<IoServer>,
    /// The address at which the I/O server accepts channels.
    pub at: SocketAddr,
    addresses: Vec<IpAddr>,
}

impl Cluster {
    pub fn new(network: NetworkKind) -> Self {
        let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        Self::at(network, addresses.into())
    }

    /// Makes a cluster with other cluster addresses.
    pub fn at(network: NetworkKind, addresses: Vec<IpAddr>) -> Self {
        let io = start(network, v4(0), addresses.clone()).unwrap();
        let at = io.local();
        Self {
            network,
            io: Some(io),
            at,
            addresses,
        }
    }

    /// Ends the I/O server.
    pub fn stop(&mut self) {
        self.io = None;
    }

    /// Starts the I/O server again at its address.
    pub async fn start_again(&mut self) {
        // The port is taken until the tasks of the last I/O server have ended.
        self.io = Some(until(|| start(self.network, self.at, self.addresses.clone()).ok()).await);
    }

    pub fn agent(&self, name: &str) -> Agent {
        self.agent_with_key(name, key(1))
    }

    pub fn agent_with_key(&self, name: &str, key: ClusterKey) -> Agent {
        Agent::start(AgentSettings {
            node: name.to_owned(),
            io_server: self.at,
            network: self.network,
            key,
            previous_key: None,
            buffer: BUFFER,
        })
        .unwrap()
    }
}

fn start(
    network: NetworkKind,
    listen: SocketAddr,
    cluster_addresses: Vec<IpAddr>,
) -> io::Result<IoServer> {
    IoServer::start(IoSettings {
        node: "io1".to_owned(),
        listen,
        network,
        key: key(1),
        previous_key: None,
        cluster_addresses,
        buffer: BUFFER,
        policy: PortPolicy::RoundRobin,
        weights: BTreeMap::new(),
    })
}

pub fn key(byte: u8) -> ClusterKey {
    ClusterKey::from_bytes([byte; 32]).unwrap()
}

pub async fn client(port: u16) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap()
}

pub fn v4(port: u16) -> SocketAddr {
    (IpAddr::V4(Ipv4Addr::LOCALHOST), port).into()
}

/// Asks again and again. A test that waits for something that never happens is ended by `limit`.
pub async fn until<T>(mut what: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = what() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs a test on each network. A test that hangs fails.
pub fn on_each<F: Future<Output = ()>>(test: impl Fn(Cluster) -> F) {
    for network in NETWORKS {
        on(network, &test);
    }
}

/// Runs a test on one network. A test that hangs fails.
pub fn on<F: Future<Output = ()>>(network: NetworkKind, test: impl Fn(Cluster) -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let limit = Duration::from_secs(120);
        let done = tokio::time::timeout(limit, async { test(Cluster::new(network)).await });
        assert!(done.await.is_ok(), "it hangs over {network:?}");
    });
}
