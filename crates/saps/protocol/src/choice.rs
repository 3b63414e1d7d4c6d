//! Which of the nodes that listen on a port gets its next connection.
//!
//! As with a pool's data servers (`baton_core::policy`), but the I/O server sees every connection begin and end, so that
//! load is no old news: least loaded is the one with the fewest open connections for its weight, now.

use std::net::IpAddr;
use std::num::NonZeroU8;

use siphasher::sip::SipHasher24;

use baton_core::maglev;

/// How a node is chosen. Whose weight is 0 gets nothing, whatever the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortPolicy {
    /// Each in turn, as in the paper.
    #[default]
    RoundRobin,
    /// Each in turn, as often as its weight says.
    Weighted,
    /// The one with the fewest open connections of this port, for its weight.
    LeastLoaded,
    /// By the client's address, with a Maglev table: few clients move when a node comes or goes.
    Client,
}

/// One who listens.
#[derive(Clone, Debug)]
pub(super) struct Candidate<L> {
    pub(super) who: L,
    /// Its node's.
    pub(super) name: String,
    pub(super) weight: u8,
    pub(super) open: u32,
    /// Of [`PortPolicy::Weighted`]: what it is owed, in turns times weights.
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

/// Those who listen on one port, the one that was chosen longest ago first.
#[derive(Clone, Debug)]
pub(super) struct Candidates<L> {
    pub(super) all: Vec<Candidate<L>>,
    /// For each place of the Maglev table one of `all`; empty until it is asked for.
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
    /// Who they are, or their weights, are about to change.
    pub(super) fn change(&mut self) -> &mut Vec<Candidate<L>> {
        self.table.clear();
        &mut self.all
    }

    /// The next one, but for those for whom `tried` holds; it has one connection more from here on.
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
                // Cross-multiplied: open + 1 over weight.
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
        // The table names places; whoever is chosen by it has no turn that could pass.
        if policy != PortPolicy::Client {
            let chosen = self.all.remove(at);
            self.all.push(chosen);
        }
        Some(who)
    }

    /// As nginx's smooth weighted round robin: turns of one are spread among those of others.
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
        // A remainder of a table's length fits any usize.
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
