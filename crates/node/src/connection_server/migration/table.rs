//! The TCB table and what the indices in it mean. It is read as a whole and written batch by batch.

use std::time::Duration;

use anyhow::Result;
use baton_abi::{DATA_SERVER_PRESENT, DataServer, Tcb, TcbKey};
use baton_core::migration::{Book, Server, merge};
use baton_dataplane::{ConnectionServer, Entries, Hold, Resumed, Tick};
use baton_net::Link;
use baton_wire::{Address, LeftOut, ShortAddress, TcbEntry};

use crate::{connection_server::failover::leftovers::Leftovers, network::egress::Egress};

/// This node's table of TCB entries, and what has requests wait during a migration.
pub struct Table {
    entries: Entries,
    hold: Hold,
    /// Sends the packets that waited.
    egress: Egress,
    leftovers: Leftovers,
    book: Book,
    /// How many entries still fit, by the last sweep's count at `prepare` and the entries added since.
    room: u32,
}

/// How many entries of a batch were taken, and how many were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    pub taken: u32,
    /// How many entries were left out, by the index of `LeftOut`.
    pub left_out: [u32; LeftOut::ALL.len()],
}

impl Table {
    pub fn open(server: &ConnectionServer, links: &[Link], leftovers: Leftovers) -> Result<Self> {
        Ok(Self {
            entries: server.entries()?,
            hold: server.hold()?,
            egress: Egress::open(links)?,
            leftovers,
            book: Book::default(),
            room: 0,
        })
    }

    /// Reads all entries that can be described to another node. Their indices are translated as of the last `look_up`.
    pub fn read(&self) -> Result<Vec<TcbEntry>> {
        let copies = self.entries.read()?;
        let now = Tick::now().0;
        Ok(copies
            .iter()
            .filter_map(|(key, tcb)| self.book.export(key, tcb, now))
            .collect())
    }

    /// Has requests that begin connections wait from now on, for at most `time`.
    pub fn hold(&self, time: Duration) -> Result<()> {
        Ok(self.hold.begin(time)?)
    }

    /// Has all packets of clients go on to the other connection server for `time`, also those that waited.
    pub fn pass_on(&self, to: &DataServer, time: Duration) -> Result<()> {
        self.send(self.hold.pass_on(to, time)?)
    }

    /// Sends what still waits to the other connection server, too, because a processor may have been slow.
    pub fn let_go(&self) -> Result<()> {
        self.send(self.hold.let_go()?)
    }

    /// Ends the waiting and passing on. All packets are handled here again.
    pub fn release(&self) -> Result<()> {
        self.send(self.hold.end()?)
    }

    fn send(&self, resumed: Vec<Resumed>) -> Result<()> {
        for resumed in resumed {
            if let Resumed::Leaves(frame) = resumed {
                self.egress.send(&frame)?;
            }
        }
        Ok(())
    }

    /// Prepares the table for entries from another node. Clients come with the entries and must not be sent back there,
    /// so packets are no longer passed on. What is left here from an earlier time in front is forgotten before, because
    /// it could not be told from entries of idle connections that come back.
    pub fn prepare(&mut self) -> Result<()> {
        self.leftovers.forget();
        self.release()?;
        self.look_up()?;
        let used = u32::try_from(self.entries.live()?).unwrap_or(u32::MAX);
        self.room = self.entries.capacity().saturating_sub(used);
        Ok(())
    }

    /// Puts entries into the table. Left out are those that do not fit, that mean nothing here, or of which the table
    /// has newer ones.
    pub fn write(&mut self, entries: &[TcbEntry]) -> Result<Took> {
        let now = Tick::now().0;
        let mut took = Took::default();
        let (mut keys, mut tcbs) = (Vec::new(), Vec::new());
        for entry in entries {
            match self.placed(entry, now)? {
                Ok((key, tcb)) => {
                    keys.push(key);
                    tcbs.push(tcb);
                    took.taken += 1;
                }
                Err(why) => took.left_out[why.index()] += 1,
            }
        }
        self.entries.write(&keys, &tcbs)?;
        Ok(took)
    }

    /// Returns what the table is to hold for this entry, or why it is left out.
    fn placed(&mut self, entry: &TcbEntry, now: u32) -> Result<Result<(TcbKey, Tcb), LeftOut>> {
        let (key, _) = match self.book.import(entry, now) {
            Ok(placed) => placed,
            Err(why) => return Ok(Err(why)),
        };
        let here = self.entries.get(&key)?;
        if here.is_none() {
            let Some(room) = self.room.checked_sub(1) else {
                return Ok(Err(LeftOut::Full));
            };
            self.room = room;
        }
        let here = here.and_then(|tcb| self.book.export(&key, &tcb, now));
        Ok(match merge(here.as_ref(), entry) {
            Some(merged) => self.book.import(&merged, now),
            None => Err(LeftOut::Older),
        })
    }

    /// Looks up what the indices mean. This takes half as long as reading the whole table, so it is done before any
    /// request waits. Connections whose data server gets its index only afterwards are asked for (CLAIM), as if their
    /// entries were lost.
    pub fn look_up(&mut self) -> Result<()> {
        let servers = self.entries.data_servers()?.into_iter().map(|server| {
            let address = Address::from_octets(server.address);
            (server.address != [0; 16]).then_some(Server {
                address: ShortAddress::try_from(address.ip()).ok()?,
                present: u32::from(server.flags) & DATA_SERVER_PRESENT != 0,
            })
        });
        let services = self.entries.services()?;
        self.book = Book::new(
            servers.collect(),
            &self.entries.pools()?,
            self.entries.route_ids()?,
            (services.into_iter()).filter(|(at, _)| at.be_port != 0),
        );
        Ok(())
    }
}
