//! The three ways to the same three servers.

/// A way from the client to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Competitor {
    /// By the cluster address.
    Baton,
    /// By the servers' own addresses.
    Direct,
    /// Through a proxy.
    HaProxy,
}

impl Competitor {
    /// In the order of their turns.
    pub const ALL: [Competitor; 3] = [Competitor::Baton, Competitor::Direct, Competitor::HaProxy];

    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Competitor::Baton => "baton",
            Competitor::Direct => "direct",
            Competitor::HaProxy => "HAProxy",
        }
    }

    /// Where the client connects, as bench/lab.toml has it. Direct access is spread over all servers
    /// as evenly as baton's and HAProxy's round robin is.
    pub fn addresses(self) -> &'static [&'static str] {
        match self {
            Competitor::Baton => &["10.77.0.100"],
            Competitor::Direct => &["10.77.0.11", "10.77.0.12", "10.77.0.13"],
            Competitor::HaProxy => &["10.77.0.3"],
        }
    }
}

/// One of something for each competitor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Each<T> {
    /// Baton's.
    pub baton: T,
    /// That of direct access.
    pub direct: T,
    /// HAProxy's.
    pub haproxy: T,
}

impl<T> Each<T> {
    /// Makes each in turn.
    pub fn try_new<E>(mut make: impl FnMut(Competitor) -> Result<T, E>) -> Result<Each<T>, E> {
        Ok(Each {
            baton: make(Competitor::Baton)?,
            direct: make(Competitor::Direct)?,
            haproxy: make(Competitor::HaProxy)?,
        })
    }

    /// That of a competitor.
    pub fn of(&self, competitor: Competitor) -> &T {
        match competitor {
            Competitor::Baton => &self.baton,
            Competitor::Direct => &self.direct,
            Competitor::HaProxy => &self.haproxy,
        }
    }

    /// That of a competitor, to change.
    pub fn of_mut(&mut self, competitor: Competitor) -> &mut T {
        match competitor {
            Competitor::Baton => &mut self.baton,
            Competitor::Direct => &mut self.direct,
            Competitor::HaProxy => &mut self.haproxy,
        }
    }

    /// Something made of each.
    pub fn map<U>(&self, mut what: impl FnMut(&T) -> U) -> Each<U> {
        Each {
            baton: what(&self.baton),
            direct: what(&self.direct),
            haproxy: what(&self.haproxy),
        }
    }
}
