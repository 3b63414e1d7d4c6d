//! HELLO: a node says that it lives, how busy it is, and how its local servers are.

use baton_abi::{
    LCCP_HEALTH_FAILING, LCCP_HEALTH_PASSING, LCCP_HEALTH_UNKNOWN, LCCP_MAX_BODY, LccpHello,
    LccpHelloService,
};

use super::numbered::numbered;
use crate::{Endpoint, Error, Incarnation};

/// A heartbeat.
///
/// It speaks for the services it lists and says nothing of others: a node with more services than
/// fit one message sends several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    incarnation: Incarnation,
    cpu: Permille,
    draining: bool,
    services: Vec<HelloService>,
}

impl Hello {
    /// How many services one HELLO holds: what fits `LCCP_MAX_BODY`.
    pub const MAX_SERVICES: usize =
        (LCCP_MAX_BODY as usize - size_of::<LccpHello>()) / size_of::<LccpHelloService>();

    /// Makes a heartbeat about `services`, from a node that uses the share `cpu` of all its processors.
    ///
    /// # Errors
    /// [`Error::TooManyServices`] above [`Hello::MAX_SERVICES`].
    pub fn new(
        incarnation: Incarnation,
        cpu: Permille,
        services: Vec<HelloService>,
    ) -> Result<Self, Error> {
        if services.len() > Self::MAX_SERVICES {
            return Err(Error::TooManyServices {
                found: services.len(),
                max: Self::MAX_SERVICES,
            });
        }
        Ok(Self {
            incarnation,
            cpu,
            draining: false,
            services,
        })
    }

    /// The same heartbeat from a node that wants no new requests (`draining`), or wants them again.
    pub fn with_draining(self, draining: bool) -> Self {
        Self { draining, ..self }
    }

    /// As many heartbeats as `services` need. There is at least one, since a node without services lives as well.
    pub fn batches(
        incarnation: Incarnation,
        cpu: Permille,
        services: &[HelloService],
    ) -> Vec<Self> {
        let one = |services: &[HelloService]| Self {
            incarnation,
            cpu,
            draining: false,
            services: services.to_vec(),
        };
        if services.is_empty() {
            return vec![one(&[])];
        }
        services.chunks(Self::MAX_SERVICES).map(one).collect()
    }

    /// The run of the sending daemon that this heartbeat is from.
    pub const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// How much of all its processors the node uses.
    pub const fn cpu(&self) -> Permille {
        self.cpu
    }

    /// Whether the node wants no new requests.
    pub const fn is_draining(&self) -> bool {
        self.draining
    }

    /// The services that the heartbeat is about.
    pub fn services(&self) -> &[HelloService] {
        &self.services
    }
}

/// The state of one service on the sending node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloService {
    /// The cluster address and port of the service.
    pub cluster: Endpoint,
    /// What the node's own check of its server says.
    pub health: Health,
    /// Established connections of this service on the node.
    pub connections: u32,
}

numbered! {
    /// What a node knows of its local server (`enum lccp_health`).
    pub enum Health {
        /// No verdict yet.
        Unknown = LCCP_HEALTH_UNKNOWN,
        /// The server answers.
        Passing = LCCP_HEALTH_PASSING,
        /// The server does not answer.
        Failing = LCCP_HEALTH_FAILING,
    }
}

/// A share in thousandths: 0 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permille(u16);

impl Permille {
    /// The largest share: the whole, in thousandths.
    pub const MAX: u16 = 1000;

    /// The share, or the whole if `value` is above it. It is meant for measurements, which may overshoot.
    pub const fn saturating(value: u16) -> Self {
        Self(if value > Self::MAX { Self::MAX } else { value })
    }

    /// The share in thousandths.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for Permille {
    type Error = Error;

    fn try_from(value: u16) -> Result<Self, Error> {
        if value > Self::MAX {
            return Err(Error::Permille { found: value });
        }
        Ok(Self(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    fn service(port: u16) -> HelloService {
        let cluster = Endpoint {
            address: std::net::Ipv4Addr::new(10, 77, 0, 100).into(),
            port,
        };
        HelloService {
            cluster,
            health: Health::Passing,
            connections: 0,
        }
    }

    #[test]
    fn batches_keep_every_service_and_fit() {
        let life = Incarnation::started_at(Clock::from_nanos(1));
        for n in [0, 1, Hello::MAX_SERVICES, Hello::MAX_SERVICES + 1, 200] {
            let services: Vec<_> = (0..n).map(|i| service(i as u16)).collect();
            let batches = Hello::batches(life, Permille::saturating(0), &services);
            assert!(!batches.is_empty());
            let together: Vec<_> = batches
                .iter()
                .flat_map(|hello| hello.services())
                .copied()
                .collect();
            assert_eq!(together, services);
            for batch in batches {
                assert!(Hello::new(life, batch.cpu(), batch.services().to_vec()).is_ok());
            }
        }
    }

    #[test]
    fn one_service_too_many_is_an_error() {
        let life = Incarnation::started_at(Clock::from_nanos(1));
        let services = vec![service(80); Hello::MAX_SERVICES + 1];
        assert!(matches!(
            Hello::new(life, Permille::saturating(0), services),
            Err(Error::TooManyServices { .. })
        ));
    }

    #[test]
    fn a_measured_share_saturates_and_a_claimed_one_errs() {
        assert_eq!(Permille::saturating(1003).get(), 1000);
        assert_eq!(
            Permille::try_from(1001),
            Err(Error::Permille { found: 1001 })
        );
    }
}
