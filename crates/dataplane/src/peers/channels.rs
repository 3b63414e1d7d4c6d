//! Channels: what was sent to each node and came from it, and what can be sent again.

use std::{net::Ipv4Addr, time::Duration};

use baton_abi::{
    Channel, MAX_PEERS, ReceiveWindow, SEND_BUFFER_MESSAGES, SentMessage, WINDOW, short_address,
};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};
use zerocopy::IntoBytes as _;

use crate::{
    Dataplane, Error,
    clock::age_of_sent,
    maps::{again, element, lookup, map_error, read, update},
};

/// The maps of the channels, for a task of its own.
pub struct Channels {
    channels: MapHandle,
    send_buffer: MapHandle,
    receive_windows: Option<MapHandle>,
}

impl Dataplane {
    /// A second handle to the maps of the channels.
    pub fn channels(&self) -> Result<Channels, Error> {
        let maps = &self.programs().common;
        Ok(Channels {
            channels: again("channels", &maps.channels)?,
            send_buffer: again("send_buffer", &maps.send_buffer)?,
            receive_windows: (self.as_data_server())
                .map(|server| again("receive_windows", &server.receive_windows))
                .transpose()?,
        })
    }
}

impl Channels {
    /// How many channels there are. Index 0 is no channel, and is not counted.
    pub const COUNT: u16 = MAX_PEERS as u16 - 1;

    /// The number of the channel's next message.
    pub fn next(&self, channel: u16) -> Result<u16, Error> {
        // Only the lower 16 bits are sent.
        Ok(self.channel(channel)?.next as u16)
    }

    /// The numbers of the next messages of the channels below `end`, by channel. This is for a caller that asks again
    /// and again.
    pub fn all_next(&self, end: u16) -> Result<Vec<u16>, Error> {
        let batch = u32::from(end).max(1);
        self.channels
            .lookup_batch(batch, MapFlags::ANY, MapFlags::ANY)
            .map_err(|error| map_error("channels", error))?
            .take(end.into())
            .map(|(_, value)| Ok(read::<Channel>("channels", &value)?.next as u16))
            .collect()
    }

    /// Makes the numbers of a channel that was never used begin at `first`, so that its receiver can tell them from
    /// numbers of an earlier life.
    pub fn begin_at(&self, channel: u16, first: u16) -> Result<(), Error> {
        let mut used = self.channel(channel)?;
        if used.next != 0 {
            return Ok(());
        }
        used.next = first.into();
        update("channels", &self.channels, &u32::from(channel), &used)
    }

    /// The index of the interface by which a message left, and its frame. `None` if the message is no longer there, or
    /// is older than `oldest`.
    pub fn sent_message(
        &self,
        channel: u16,
        number: u16,
        oldest: Duration,
    ) -> Result<Option<(u32, Vec<u8>)>, Error> {
        let slot = self.channel(channel)?.slots[usize::from(number) % WINDOW as usize];
        let read = || {
            element::<SentMessage>(
                "send_buffer",
                &self.send_buffer,
                slot % SEND_BUFFER_MESSAGES,
            )
        };
        // It is read twice, because the program may write to it meanwhile.
        let (sent, again) = (read()?, read()?);
        if sent != again
            || (sent.channel, sent.sequence) != (channel, number)
            || age_of_sent(sent.sent) > oldest
        {
            return Ok(None);
        }
        let frame = sent.frame.get(..sent.bytes as usize);
        let frame = frame.filter(|frame| !frame.is_empty());
        Ok(frame.map(|frame| (sent.ifindex, frame.to_vec())))
    }

    /// What came from a node. `None` before [`Channels::make_receive_window`], and on a node that is no data server.
    pub fn receive_window(&self, sender: Ipv4Addr) -> Result<Option<ReceiveWindow>, Error> {
        match &self.receive_windows {
            Some(map) => lookup("receive_windows", map, &short_address(sender)),
            None => Ok(None),
        }
    }

    /// Makes the program note what comes from a node from now on. This does nothing on a node that is no data server.
    pub fn make_receive_window(&self, sender: Ipv4Addr) -> Result<(), Error> {
        let Some(map) = &self.receive_windows else {
            return Ok(());
        };
        if self.receive_window(sender)?.is_some() {
            return Ok(());
        }
        map.update(
            short_address(sender).as_bytes(),
            ReceiveWindow::default().as_bytes(),
            MapFlags::NO_EXIST,
        )
        .map_err(|error| map_error("receive_windows", error))
    }

    fn channel(&self, channel: u16) -> Result<Channel, Error> {
        element("channels", &self.channels, channel.into())
    }
}
