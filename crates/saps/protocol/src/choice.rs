//! The choice of the node that gets a port's next connection, among the nodes that listen on that port.
//!
//! The policies are those of a pool's data servers (`baton_core::policy`). But the I/O server sees every connection
//! begin and end, so it needs no reports of load: the least loaded node is the one that has the fewest open
//! connections for its weight at this moment.

use std::net::IpAddr;
use std::num::NonZeroU8;

use siphasher::sip::SipHasher24;

use baton_core::maglev;

/// How a node is chosen. A node of weight 0 gets no connections, whatever the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortPolicy {
    /// Each node in turn, as in the paper.
    #[default]
    RoundRobin,
    /// Each node in turn, as often as its weight says.
    Weighted,
    /// The node with the fewest open connections of this port, for its weight.
    LeastLoaded,
    /// By the client's address, with a Maglev table: few clients move when a node comes or goes.
    Client,
}

/// One listener of a port.
#[derive(Clone, Debug)]
pub(super) struct Candidate<L> {
    pub(super) who: L,
    /// The name of the listener's node.
    pub(super) name: String,
    pub(super) weight: u8,
    pub(super) open: u32,
    /// For [`PortPolicy::Weighted`]: what the listener is owed, in turns times weights.
    credit: i64,
}

impl<L> Candidate<L> {
    pub(super) fn new(who: L, name: &str, weight: u8) -> Self {
        Self {
            who,
            name: name.to_owned(),
            weight,
            open: 0,
            credit: 0,
        }
    }
}

/// The listeners of one port; the one whose last turn is longest ago comes first.
#[derive(Clone, Debug)]
pub(super) struct Candidates<L> {
    pub(super) all: Vec<Candidate<L>>,
    /// For each place of the Maglev table the index of a listener in `all`; empty until the table is needed.
    table: Vec<usize>,
}

impl<L> Default for Candidates<L> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            table: Vec::new(),
        }
    }
}

impl<L: Copy + Eq> Candidates<L> {
    /// Gives access to the listeners in order to change them or their weights. The Maglev table is thrown away.
    pub(super) fn change(&mut self) -> &mut Vec<Candidate<L>> {
        self.table.clear();
        &mut self.all
    }

    /// Chooses the next listener, leaving out those for whom `tried` holds, and counts one more open connection for
    /// it.
    pub(super) fn next(
        &mut self,
        policy: PortPolicy,
        client: IpAddr,
        tried: impl Fn(&L) -> bool,
    ) -> Option<L> {
        let may = |one: &Candidate<L>| one.weight > 0 && !tried(&one.who);
        let at = match policy {
            PortPolicy::RoundRobin => self.all.iter().position(may)?,
            PortPolicy::Weighted => self.most_owed(may)?,
            PortPolicy::LeastLoaded => {
                let able = self.all.iter().enumerate().filter(|(_, one)| may(one));
                // Compares (open + 1) / weight by cross-multiplication.
                let load = |one: &Candidate<L>, other: &Candidate<L>| {
                    (u64::from(one.open) + 1) * u64::from(other.weight)
                };
                able.min_by(|(_, one), (_, other)| load(one, other).cmp(&load(other, one)))?
                    .0
            }
            PortPolicy::Client => self.of_client(client, may)?,
        };
        self.all[at].open += 1;
        let who = self.all[at].who;
        // The Maglev table holds indices into `all`, so its policy must not reorder `all`; it takes no turns either.
        if policy != PortPolicy::Client {
            let chosen = self.all.remove(at);
            self.all.push(chosen);
        }
        Some(who)
    }

    /// Smooth weighted round robin, as in nginx: the turns of one listener are spread among those of the others.
    fn most_owed(&mut self, may: impl Fn(&Candidate<L>) -> bool) -> Option<usize> {
        let mut total = 0;
        let mut most: Option<usize> = None;
        for at in 0..self.all.len() {
            if !may(&self.all[at]) {
                continue;
            }
            let weight = i64::from(self.all[at].weight);
            self.all[at].credit += weight;
            total += weight;
            if most.is_none_or(|most| self.all[at].credit > self.all[most].credit) {
                most = Some(at);
            }
        }
        let most = most?;
        self.all[most].credit -= total;
        Some(most)
    }

    fn of_client(&mut self, client: IpAddr, may: impl Fn(&Candidate<L>) -> bool) -> Option<usize> {
        if self.table.is_empty() {
            self.table = table(&self.all)?;
        }
        let octets = match client {
            IpAddr::V4(client) => client.to_ipv6_mapped().octets(),
            IpAddr::V6(client) => client.octets(),
        };
        let hash = SipHasher24::new_with_key(b"baton saps port.").hash(&octets);
        let size = self.table.len();
        // A remainder of the table's length fits any usize.
        let first = (hash % size as u64) as usize;
        (0..size)
            .map(|step| self.table[(first + step) % size])
            .find(|at| may(&self.all[*at]))
    }
}

fn table<L>(all: &[Candidate<L>]) -> Option<Vec<usize>> {
    let (able, servers): (Vec<usize>, Vec<(&str, NonZeroU8)>) = all
        .iter()
        .enumerate()
        .filter_map(|(at, one)| Some((at, (one.name.as_str(), NonZeroU8::new(one.weight)?))))
        .unzip();
    let table = maglev::table(&servers)?;
    Some(table.into_iter().map(|index| able[index]).collect())
}
