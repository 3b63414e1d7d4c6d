//! Measures what a TCB entry costs: by the kernel's own account of the table, and by how much less memory the machine
//! has after the table was made and filled.

use std::{
    net::{Ipv4Addr, SocketAddrV4},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use baton_abi::{ROLE_CS, Tcb, TcbKey};
use baton_dataplane::{ConnectionServer, Dataplane};

use crate::bpf;

/// The most bytes that an entry should cost.
const GOAL: u32 = 128;
/// The number of live flows that must fit into a table of the default size.
const MILLION: u32 = 1_000_000;

/// The results of the measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    entries: u32,
    table_bytes: u64,
    all_bytes: u64,
    made: Growth,
    filled: Growth,
    first: u32,
    first_found: u32,
    all_found: u32,
}

/// Loads a connection server's programs without attaching them, and fills their table.
pub(crate) fn measure(entries: u32) -> Result<Memory> {
    eprintln!("memory: a table of {entries} entries");
    let before = Meminfo::settled()?;
    let dataplane = Dataplane::load(&baton_dataplane::Options {
        roles: ROLE_CS as _,
        flows: entries,
        kept_requests: 1024,
        xdp: baton_dataplane::XdpChoice::Auto,
        frags: false,
        pins: None,
    })?;
    let made = Meminfo::now()?.since(before);
    let (table_bytes, all_bytes) = accounted(entries)?;

    let first = entries.min(MILLION);
    fill(&dataplane, 0..first)?;
    let first_found = found(&dataplane, 0..first)?;
    fill(&dataplane, first..entries)?;
    let all_found = found(&dataplane, 0..entries)?;
    Ok(Memory {
        entries,
        table_bytes,
        all_bytes,
        made,
        filled: Meminfo::now()?.since(before),
        first,
        first_found,
        all_found,
    })
}

impl Memory {
    /// A table of the bytes that an entry takes, and a line on how many entries fit.
    pub fn markdown(&self) -> String {
        let each = |bytes: i64| format!("{:.1}", bytes as f64 / f64::from(self.entries));
        format!(
            "## Memory of a connection server's table of {} entries, bytes an entry (goal ≤ {GOAL})\n\n\
             | what | bytes an entry |\n|---|--:|\n\
             | the table, as the kernel accounts for it | {} |\n\
             | all maps together, as the kernel accounts for them | {} |\n\
             | all maps, growth of VmallocUsed when made | {} |\n\
             | the same, when filled | {} |\n\
             | all maps, fall of MemAvailable when made | {} |\n\
             | the same, when filled | {} |\n\n\
             Of the first {} flows put in, {} were found; of all {} then, {}.\n",
            self.entries,
            each(self.table_bytes as i64),
            each(self.all_bytes as i64),
            each(self.made.vmalloc),
            each(self.filled.vmalloc),
            each(self.made.taken),
            each(self.filled.taken),
            self.first,
            self.first_found,
            self.entries,
            self.all_found,
        )
    }
}

fn fill(dataplane: &Dataplane, flows: std::ops::Range<u32>) -> Result<()> {
    let server = table_of(dataplane)?;
    for number in flows {
        let tcb = Tcb {
            request_seq: number,
            ..Tcb::default()
        };
        server.set_tcb(&flow(number), &tcb)?;
    }
    Ok(())
}

/// The number of these flows that are in the table. An entry that differs from what was written is an error.
fn found(dataplane: &Dataplane, flows: std::ops::Range<u32>) -> Result<u32> {
    let server = table_of(dataplane)?;
    let mut found = 0;
    for number in flows {
        if let Some(tcb) = server.tcb(&flow(number))? {
            if tcb.request_seq != number {
                bail!(
                    "entry {number} holds what was written to {}",
                    tcb.request_seq
                );
            }
            found += 1;
        }
    }
    Ok(found)
}

fn table_of(dataplane: &Dataplane) -> Result<&ConnectionServer> {
    (dataplane.as_connection_server()).context("this node has no table of TCB entries")
}

/// The flow with this number: clients are in 10.0.0.0/8 and have 60,000 ports each.
fn flow(number: u32) -> TcbKey {
    let address = Ipv4Addr::from(0x0a00_0000 + number / 60_000);
    let port = 1024 + (number % 60_000) as u16; // less than 60,000: it fits
    let service = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 100), 80);
    TcbKey::of(SocketAddrV4::new(address, port), service)
}

/// The `memlock` of the table, and that of all maps that this process holds.
fn accounted(entries: u32) -> Result<(u64, u64)> {
    let mut maps = bpf::descriptors("/proc/self/fdinfo")?;
    maps.retain(|fields| fields.contains_key("map_id"));
    maps.sort_by(|a, b| a["map_id"].cmp(&b["map_id"]));
    maps.dedup_by(|a, b| a["map_id"] == b["map_id"]);

    let (mut table, mut all) = (None, 0);
    for fields in &maps {
        let number = |name: &str| fields.get(name).and_then(|value| value.parse::<u64>().ok());
        let bytes = number("memlock").context("the kernel gives no memlock of a map")?;
        all += bytes;
        if number("max_entries") == Some(entries.into())
            && number("key_size") == Some(size_of::<TcbKey>() as u64)
            && number("value_size") == Some(size_of::<Tcb>() as u64)
        {
            table = Some(bytes);
        }
    }
    Ok((
        table.context("the table is not among this process's maps")?,
        all,
    ))
}

#[derive(Clone, Copy, Debug)]
struct Meminfo {
    vmalloc: i64,
    available: i64,
}

/// How much memory in use has grown, in bytes. It includes what other processes on the machine do.
#[derive(Clone, Copy, Debug)]
struct Growth {
    vmalloc: i64,
    taken: i64,
}

impl Meminfo {
    fn now() -> Result<Meminfo> {
        let text = std::fs::read_to_string("/proc/meminfo").context("read /proc/meminfo")?;
        let bytes = |name: &str| {
            text.lines()
                .find_map(|line| {
                    line.strip_prefix(name)?
                        .strip_prefix(':')?
                        .strip_suffix("kB")
                })
                .and_then(|kilobytes| kilobytes.trim().parse::<i64>().ok())
                .map(|kilobytes| kilobytes << 10)
                .with_context(|| format!("/proc/meminfo says nothing of {name}"))
        };
        Ok(Meminfo {
            vmalloc: bytes("VmallocUsed")?,
            available: bytes("MemAvailable")?,
        })
    }

    /// Reads the numbers once VmallocUsed has stayed the same for half a second, or after five seconds: the kernel frees
    /// the maps of a process that has ended only later.
    fn settled() -> Result<Meminfo> {
        let mut last = Meminfo::now()?;
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(500));
            let now = Meminfo::now()?;
            if now.vmalloc == last.vmalloc {
                return Ok(now);
            }
            last = now;
        }
        Ok(last)
    }

    fn since(self, before: Meminfo) -> Growth {
        Growth {
            vmalloc: self.vmalloc - before.vmalloc,
            taken: before.available - self.available,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn flows_differ_where_ports_begin_anew() {
        let numbers = [0, 1, 59_999, 60_000, 60_001, 119_999, 120_000, 1 << 20];
        let keys: BTreeSet<_> = numbers
            .map(|number| (flow(number).client, flow(number).be_client_port))
            .into();
        assert_eq!(keys.len(), numbers.len());
    }
}
