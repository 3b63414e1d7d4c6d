//! A step that checks that the same client gets the same data server.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::Stdio;

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::http::whoami;
use crate::world::{Clients, World};

/// Connects from many addresses, several times from each. Each address must always get the same data server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sticky {
    /// The client's addresses: 10.77.0.N, from the first N to the last.
    hosts: (u8, u8),
    /// The number of connections from each address.
    times: usize,
    /// The least and the greatest number of clients that each data server may have.
    even: Option<(usize, usize)>,
    /// A data server that is gone since the last such step: its clients must have another one.
    gone: Option<String>,
    /// How many other clients may have moved since (Maglev's table promises that few move, not that none does).
    #[serde(default)]
    moved_at_most: usize,
    /// Whether every client must have the data server that the first such step found.
    #[serde(default)]
    as_at_first: bool,
}

impl Sticky {
    /// Runs the step.
    ///
    /// # Errors
    /// A client got several data servers, or one moved without need.
    pub fn run(&self, world: &mut World) -> Result<()> {
        let addresses: Vec<Ipv4Addr> = (self.hosts.0..=self.hosts.1)
            .map(|n| Ipv4Addr::new(10, 77, 0, n))
            .collect();
        add_addresses(world, &addresses)?;
        let servers = world.lab.within("client", || self.ask(&addresses))??;
        let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
        for server in servers.values() {
            *shares.entry(server).or_default() += 1;
        }
        if let Some((least, most)) = self.even {
            ensure!(
                shares.values().all(|share| (least..=most).contains(share)),
                "the shares are {shares:?}"
            );
        }
        self.compare(&world.clients, &servers)?;
        world.clients.push(servers);
        Ok(())
    }

    fn compare(&self, earlier: &[Clients], now: &Clients) -> Result<()> {
        if let (true, Some(first)) = (self.as_at_first, earlier.first()) {
            let moved = now
                .iter()
                .filter(|(client, server)| first.get(client) != Some(server));
            ensure!(
                moved.clone().next().is_none(),
                "not as at first: {:?}",
                moved.collect::<Vec<_>>()
            );
            return Ok(());
        }
        let Some(before) = earlier.last() else {
            return Ok(());
        };
        let mut moved = 0;
        for (client, server) in now {
            match before.get(client) {
                Some(old) if Some(old) == self.gone.as_ref() => {
                    ensure!(server != old, "{client} is still with {old}");
                }
                Some(old) => moved += usize::from(server != old),
                None => {}
            }
        }
        ensure!(
            moved <= self.moved_at_most,
            "{moved} clients moved without need"
        );
        Ok(())
    }

    fn ask(&self, addresses: &[Ipv4Addr]) -> Result<Clients> {
        let mut servers = Clients::new();
        for address in addresses {
            let first = whoami(Some(*address))?;
            for _ in 1..self.times {
                let again = whoami(Some(*address))?;
                ensure!(again == first, "{address} came to {first}, then to {again}");
            }
            servers.insert(*address, first);
        }
        Ok(servers)
    }
}

/// Adds the addresses to the client's interface. Addresses that are there already stay.
fn add_addresses(world: &World, addresses: &[Ipv4Addr]) -> Result<()> {
    let mut ip = world.lab.exec("client")?;
    ip.args(["ip", "-batch", "-"]).stdin(Stdio::piped());
    let mut child = ip.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        for address in addresses {
            writeln!(input, "address replace {address}/24 dev eth0")?;
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "ip: {status}");
    Ok(())
}
