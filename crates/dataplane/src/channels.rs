//! Channels: what was sent to each node and came from it, and what can be sent again.

use std::{collections::HashMap, net::Ipv4Addr};

use baton_abi::{Channel, Inbox, MAX_PEERS, OUTBOX, Posted, WINDOW, short_address};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use zerocopy::{FromBytes, IntoBytes as _};

use crate::{
    Dataplane, Error,
    maps::{element, lookup, map_error, read, update},
};

/// What has moved in the channels, or not.
#[derive(Debug, Default)]
pub struct Look {
    next: Vec<u16>,
    inboxes: HashMap<u32, Inbox>,
}

impl Look {
    /// The number of a channel's next message.
    pub fn next(&self, channel: u16) -> u16 {
        self.next.get(usize::from(channel)).copied().unwrap_or(0)
    }

    /// What came from a node; all zero before anything of it was to be noted.
    pub fn inbox(&self, sender: Ipv4Addr) -> Inbox {
        self.inboxes
            .get(&short_address(sender))
            .copied()
            .unwrap_or_default()
    }
}

/// The maps of the channels, for a task of its own.
pub struct Channels {
    channels: MapHandle,
    outbox: MapHandle,
    inboxes: Option<MapHandle>,
}

impl Dataplane {
    /// Another hold on the maps of the channels.
    pub fn channels(&self) -> Result<Channels, Error> {
        let maps = &self.programs().maps;
        let again = |name, map: &MapHandle| {
            MapHandle::try_from(map).map_err(|error| map_error(name, error))
        };
        Ok(Channels {
            channels: again("channels", &maps.channels)?,
            outbox: again("outbox", &maps.outbox)?,
            inboxes: (maps.inboxes.as_ref())
                .map(|map| again("inboxes", map))
                .transpose()?,
        })
    }
}

impl Channels {
    /// Channels there are, without 0, which is none.
    pub const COUNT: u16 = MAX_PEERS as u16 - 1;

    /// The number of the channel's next message.
    pub fn next(&self, channel: u16) -> Result<u16, Error> {
        // The lower bits are what is sent.
        Ok(self.channel(channel)?.next as u16)
    }

    /// The next numbers of the channels below `end`, by channel, and what came from each node, by short
    /// address. In few system calls: this is asked for again and again.
    pub fn look(&self, end: u16) -> Result<Look, Error> {
        let channels = batch::<u32, Channel>("channels", &self.channels, end.into())?;
        let inboxes = match &self.inboxes {
            Some(map) => batch("inboxes", map, map.max_entries())?,
            None => Vec::new(),
        };
        Ok(Look {
            next: channels
                .iter()
                .map(|(_, channel)| channel.next as u16)
                .collect(),
            inboxes: inboxes.into_iter().collect(),
        })
    }

    /// Has the numbers of a channel that was never used begin at `first`, so that its receiver can
    /// tell them from those of an earlier life.
    pub fn begin_at(&self, channel: u16, first: u16) -> Result<(), Error> {
        let mut used = self.channel(channel)?;
        if used.next != 0 {
            return Ok(());
        }
        used.next = first.into();
        update("channels", &self.channels, &u32::from(channel), &used)
    }

    /// The frame of a message, if it is still there.
    pub fn posted(&self, channel: u16, number: u16) -> Result<Option<Vec<u8>>, Error> {
        let slot = self.channel(channel)?.slots[usize::from(number) % WINDOW as usize];
        let read = || element::<Posted>("outbox", &self.outbox, slot % OUTBOX);
        // The program may write to it meanwhile.
        let (posted, again) = (read()?, read()?);
        if posted != again || (posted.channel, posted.sequence) != (channel, number) {
            return Ok(None);
        }
        let frame = posted.frame.get(..posted.bytes as usize);
        Ok(frame.filter(|frame| !frame.is_empty()).map(<[u8]>::to_vec))
    }

    /// What came from a node; None before anything of it was to be noted.
    pub fn inbox(&self, sender: Ipv4Addr) -> Result<Option<Inbox>, Error> {
        match &self.inboxes {
            Some(map) => lookup("inboxes", map, &short_address(sender)),
            None => Ok(None),
        }
    }

    /// Has what comes from a node noted from now on.
    pub fn make_inbox(&self, sender: Ipv4Addr) -> Result<(), Error> {
        let Some(map) = &self.inboxes else {
            return Ok(());
        };
        if self.inbox(sender)?.is_some() {
            return Ok(());
        }
        map.update(
            short_address(sender).as_bytes(),
            Inbox::default().as_bytes(),
            MapFlags::NO_EXIST,
        )
        .map_err(|error| map_error("inboxes", error))
    }

    fn channel(&self, channel: u16) -> Result<Channel, Error> {
        element("channels", &self.channels, channel.into())
    }
}

/// How many elements come with one system call.
const BATCH: u32 = 64;

/// The first elements of a map, no more than `most`.
fn batch<K: FromBytes, V: FromBytes>(
    name: &'static str,
    map: &MapHandle,
    most: u32,
) -> Result<Vec<(K, V)>, Error> {
    map.lookup_batch(most.clamp(1, BATCH), MapFlags::ANY, MapFlags::ANY)
        .map_err(|error| map_error(name, error))?
        .take(most as usize)
        .map(|(key, value)| Ok((read(name, &key)?, read(name, &value)?)))
        .collect()
}
