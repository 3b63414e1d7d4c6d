//! The three ways to the same three servers that the benchmark compares.

/// A way from the client to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Competitor {
    /// Through baton, by the cluster address.
    Baton,
    /// Without anything in between, by the servers' own addresses.
    Direct,
    /// Through a proxy, HAProxy.
    HaProxy,
}

impl Competitor {
    /// All competitors, in the order of their turns.
    pub const ALL: [Competitor; 3] = [Competitor::Baton, Competitor::Direct, Competitor::HaProxy];

    /// The name that tables show.
    pub fn name(self) -> &'static str {
        match self {
            Competitor::Baton => "baton",
            Competitor::Direct => "direct",
            Competitor::HaProxy => "HAProxy",
        }
    }

    /// The addresses to which the client connects, as bench/lab.toml has them. Direct access is spread over all
    /// servers as evenly as the round robin of baton and of HAProxy.
    pub fn addresses(self) -> &'static [&'static str] {
        match self {
            Competitor::Baton => &["10.77.0.100"],
            Competitor::Direct => &["10.77.0.11", "10.77.0.12", "10.77.0.13"],
            Competitor::HaProxy => &["10.77.0.3"],
        }
    }
}

/// One value for each competitor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Each<T> {
    /// The value of baton.
    pub baton: T,
    /// The value of direct access.
    pub direct: T,
    /// The value of HAProxy.
    pub haproxy: T,
}

impl<T> Each<T> {
    /// Makes the value of each competitor in turn.
    pub fn try_new<E>(mut make: impl FnMut(Competitor) -> Result<T, E>) -> Result<Each<T>, E> {
        Ok(Each {
            baton: make(Competitor::Baton)?,
            direct: make(Competitor::Direct)?,
            haproxy: make(Competitor::HaProxy)?,
        })
    }

    /// The value of a competitor.
    pub fn of(&self, competitor: Competitor) -> &T {
        match competitor {
            Competitor::Baton => &self.baton,
            Competitor::Direct => &self.direct,
            Competitor::HaProxy => &self.haproxy,
        }
    }

    /// The value of a competitor, for changes.
    pub fn of_mut(&mut self, competitor: Competitor) -> &mut T {
        match competitor {
            Competitor::Baton => &mut self.baton,
            Competitor::Direct => &mut self.direct,
            Competitor::HaProxy => &mut self.haproxy,
        }
    }

    /// Applies a function to each value.
    pub fn map<U>(&self, mut what: impl FnMut(&T) -> U) -> Each<U> {
        Each {
            baton: what(&self.baton),
            direct: what(&self.direct),
            haproxy: what(&self.haproxy),
        }
    }
}
