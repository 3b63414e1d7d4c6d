//! Pools: data servers that can answer alike, and the choices among them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use anyhow::{Context, Result};
use baton_abi::{CHOICE_BANKS, CHOICES_PER_POOL, MAX_POOLS, POOL_NOBODY, POOL_PER_REQUEST, Pool};
use baton_agent::terminate::judge::PoolChoices;
use baton_core::{
    Moment,
    policy::{Chooser, Policy, Server},
};
use baton_dataplane::{Dataplane, Routing, Tallied};
use tokio::sync::watch;

use super::{numbers::Numbers, routing_of};

/// What the requests of each pool choose from, by the pool's index.
pub type AllChoices = BTreeMap<u16, Arc<PoolChoices>>;

/// For each pool its index in the map, what makes its choices, and which choices were written.
pub struct Pools {
    indices: Numbers<PoolId>,
    choosers: HashMap<u16, Chooser>,
    written: HashMap<u16, Vec<u16>>,
    /// The same choices, for those who choose in user space.
    choices: watch::Sender<AllChoices>,
    /// The seed with which the programs hash clients and paths. All pools of the cluster have the same seed, so that a
    /// client goes to the same server in all pools of the same servers.
    hash_seed: u32,
}

/// What tells a pool from others, the same in every daemon that runs here. Entries name pools by index, so the next
/// daemon must find each pool at the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolId(u64);

impl PoolId {
    /// The number by which messages name the pool.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The identity of this pool of a service. Without a name it is the service's own pool.
    pub fn new(service: std::net::SocketAddrV4, pool: Option<&str>) -> Self {
        Self(stable_hash(&format!(
            "{service}/{}",
            pool.unwrap_or_default()
        )))
    }
}

/// The FNV-1a hash of a name, which must stay the same in all releases. It is never 0: in the maps 0 means none.
pub fn stable_hash(name: &str) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = name.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    hash.max(1)
}

impl Pools {
    /// Begins with the pools that an earlier daemon wrote.
    pub fn over(routing: &Routing) -> Result<Self> {
        let mut indices = Vec::new();
        for index in 0..MAX_POOLS as u16 {
            let id = routing.pool(index)?.id;
            if id != 0 {
                indices.push((PoolId(id), index));
            }
        }
        Ok(Self::with(indices))
    }

    /// Begins with pools at these indices.
    pub fn with(indices: Vec<(PoolId, u16)>) -> Self {
        Self {
            indices: Numbers::over(0..MAX_POOLS as u16, indices), // 128
            choosers: HashMap::new(),
            written: HashMap::new(),
            choices: watch::Sender::default(),
            hash_seed: 0,
        }
    }

    /// The index of a pool. A pool that has none gets one.
    pub fn index(&mut self, dataplane: &Dataplane, id: PoolId) -> Result<u16> {
        if let Some(index) = self.indices.get(&id) {
            return Ok(index);
        }
        let index = (self.indices.give(id))
            .with_context(|| format!("no room for more than {MAX_POOLS} pools"))?;
        let empty = Pool {
            id: id.0,
            ..Pool::default()
        };
        dataplane.clear_tally(Tallied::Pool(index))?;
        routing_of(dataplane)?.set_pool(index, &empty)?;
        Ok(index)
    }

    /// The index of a pool, or `None` if it has none.
    pub fn found(&self, id: PoolId) -> Option<u16> {
        self.indices.get(&id)
    }

    /// Empties and forgets all pools but these.
    pub fn keep(&mut self, dataplane: &Dataplane, wanted: &[PoolId]) -> Result<()> {
        for index in self.indices.keep(wanted) {
            self.choosers.remove(&index);
            self.written.remove(&index);
            publish(&self.choices, index, Policy::RoundRobin, &[]);
            routing_of(dataplane)?.set_pool(index, &Pool::default())?;
        }
        Ok(())
    }

    /// Writes the choices of a pool if they have changed. If there are none, the choices are `others`, the nodes that
    /// can tell clients so. The program reads one bank of choices while the other is written.
    pub fn write(
        &mut self,
        dataplane: &Dataplane,
        now: Moment,
        id: PoolId,
        (policy, per_request): (Policy, bool),
        servers: &[Server<'_>],
        others: &[u16],
    ) -> Result<()> {
        let routing = routing_of(dataplane)?;
        let index = self.index(dataplane, id)?;
        let chooser = self
            .choosers
            .entry(index)
            .and_modify(|chooser| {
                if chooser.policy() != policy {
                    *chooser = Chooser::new(policy);
                }
            })
            .or_insert_with(|| Chooser::new(policy));
        let servers = chooser.choices(now, servers);
        let members = members(servers);
        let (choices, policy, nobody) = match servers {
            [] if !others.is_empty() => (others, Policy::RoundRobin, POOL_NOBODY),
            _ => (servers, policy, 0),
        };
        let for_requests = if nobody == 0 { choices } else { &[] };
        publish(&self.choices, index, policy, for_requests);
        let flags = nobody | if per_request { POOL_PER_REQUEST } else { 0 };
        let flags = flags as u8; // bits that C keeps in a byte
        let old = routing.pool(index)?;
        let same_policy = u32::from(old.policy) == policy.number() && old.flags == flags;
        if same_policy
            && old.members == members
            && self.written.get(&index).map(Vec::as_slice) == Some(choices)
        {
            return Ok(());
        }
        let bank = (old.first_choice / CHOICES_PER_POOL + 1) % CHOICE_BANKS;
        let first_choice = (u32::from(index) * CHOICE_BANKS + bank) * CHOICES_PER_POOL;
        routing.set_choices(first_choice, choices)?;
        let pool = Pool {
            id: id.0,
            first_choice,
            choices: u32::try_from(choices.len()).context("more choices than a bank holds")?,
            hash_seed: self.hash_seed,
            generation: old
                .generation
                .wrapping_add(u16::from(has_new(&members, &old.members))),
            policy: policy.number() as u8, // an enumerator that C keeps in a byte
            flags,
            members,
        };
        routing.set_pool(index, &pool)?;
        self.written.insert(index, choices.to_vec());
        Ok(())
    }

    /// The choices of all pools, as they are now and will be.
    pub fn choices(&self) -> watch::Receiver<AllChoices> {
        self.choices.subscribe()
    }

    /// When some pool's choices may change although its servers stay the same.
    pub fn next_timeout(&self) -> Option<Moment> {
        self.choosers
            .values()
            .filter_map(Chooser::next_timeout)
            .min()
    }

    /// Whether no data server answers for this pool.
    pub fn is_empty(&self, dataplane: &Dataplane, id: PoolId) -> Result<bool> {
        match self.indices.get(&id) {
            Some(index) => {
                let pool = routing_of(dataplane)?.pool(index)?;
                Ok(pool.choices == 0 || u32::from(pool.flags) & POOL_NOBODY != 0)
            }
            None => Ok(true),
        }
    }

    /// Sets the seed of all pools that are written from now on. If it is another one, all pools are written again.
    pub fn hash_under(&mut self, seed: u32) {
        if self.hash_seed != seed {
            self.hash_seed = seed;
            self.write_all_again();
        }
    }

    /// Forgets which choices were written, so that they are written again in any case.
    pub fn write_all_again(&mut self) {
        self.written.clear();
    }
}

type Members = [u64; 4];

/// Says from what the requests of a pool choose from now on.
fn publish(choices: &watch::Sender<AllChoices>, pool: u16, policy: Policy, slots: &[u16]) {
    let policy = policy.number();
    choices.send_if_modified(|all| {
        let known = all.get(&pool);
        if known.is_some_and(|known| known.policy == policy && known.slots == slots) {
            return false;
        }
        let slots = slots.to_vec();
        all.insert(pool, Arc::new(PoolChoices { policy, slots }));
        true
    });
}

fn members(choices: &[u16]) -> Members {
    let mut members = Members::default();
    for choice in choices {
        let (word, bit) = (usize::from(choice / 64), choice % 64);
        if let Some(word) = members.get_mut(word) {
            *word |= 1 << bit;
        }
    }
    members
}

/// Whether a pool has new members. Then all its connections choose anew, because the new member may take some of them.
/// When a member leaves, only its own connections must choose anew.
fn has_new(now: &Members, before: &Members) -> bool {
    now.iter()
        .zip(before)
        .any(|(now, before)| now & !before != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_told_apart_by_service_and_name() {
        let at = |text: &str| text.parse().expect("an address");
        let (one, other) = (at("10.77.0.100:80"), at("10.77.0.100:81"));
        assert_ne!(PoolId::new(one, None), PoolId::new(other, None));
        assert_ne!(PoolId::new(one, None), PoolId::new(one, Some("a")));
        assert_eq!(PoolId::new(one, Some("a")), PoolId::new(one, Some("a")));
    }

    #[test]
    fn only_newcomers_make_connections_choose_again() {
        let (few, many) = (members(&[0, 64, 255]), members(&[0, 64, 255, 3]));
        assert_eq!(few, [1, 1, 0, 1 << 63]);
        assert!(has_new(&many, &few));
        assert!(!has_new(&few, &many));
        assert!(!has_new(&few, &few));
    }
}
