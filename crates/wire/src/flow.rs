//! A flow: one client's connection with one service.

use baton_abi::LccpFlow;

use crate::{Address, Endpoint, Error};

/// The two ends of a connection as the client sees them. Both are of the same IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    client: Endpoint,
    cluster: Endpoint,
}

impl Flow {
    /// The flow between `client` and the cluster's `cluster` address and port.
    ///
    /// # Errors
    /// [`Error::MixedFamilies`] if one is IPv4 and the other IPv6.
    pub fn new(client: impl Into<Endpoint>, cluster: impl Into<Endpoint>) -> Result<Self, Error> {
        let (client, cluster) = (client.into(), cluster.into());
        if client.address.is_ipv4() != cluster.address.is_ipv4() {
            return Err(Error::MixedFamilies {
                client: client.address.ip(),
                cluster: cluster.address.ip(),
            });
        }
        Ok(Self { client, cluster })
    }

    /// The client's end.
    pub const fn client(self) -> Endpoint {
        self.client
    }

    /// The cluster's end.
    pub const fn cluster(self) -> Endpoint {
        self.cluster
    }
}

impl From<Flow> for LccpFlow {
    fn from(flow: Flow) -> Self {
        Self {
            client: flow.client.address.octets(),
            cluster: flow.cluster.address.octets(),
            be_client_port: flow.client.port.to_be(),
            be_cluster_port: flow.cluster.port.to_be(),
        }
    }
}

impl TryFrom<LccpFlow> for Flow {
    type Error = Error;

    fn try_from(flow: LccpFlow) -> Result<Self, Error> {
        let end = |octets, be_port| Endpoint {
            address: Address::from_octets(octets),
            port: u16::from_be(be_port),
        };
        Self::new(
            end(flow.client, flow.be_client_port),
            end(flow.cluster, flow.be_cluster_port),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Endpoint {
        text.parse::<std::net::SocketAddr>().unwrap().into()
    }

    #[test]
    fn both_ends_are_of_one_ip_version() {
        assert!(Flow::new(end("198.51.100.7:40000"), end("10.77.0.100:80")).is_ok());
        assert!(Flow::new(end("[2001:db8::7]:40000"), end("[fd77::100]:80")).is_ok());
        let mixed = Flow::new(end("[2001:db8::7]:40000"), end("10.77.0.100:80")).unwrap_err();
        assert!(mixed.to_string().contains("10.77.0.100"));
    }
}
