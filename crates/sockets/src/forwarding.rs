//! The forwarding network as the far end.

use std::{io, net::SocketAddr};

use baton_forwarding::{Agent, Listening, SocketOptions, VirtualStream};

use crate::{Accepted, Connected, Family, Far, FarListening, FarStream};

impl Far for Agent {
    type Stream = VirtualStream;
    type Listening = Listening;

    async fn connect(&self, to: SocketAddr) -> io::Result<Connected<VirtualStream>> {
        let connected = Agent::connect(self, to, SocketOptions::default()).await?;
        Ok(Connected {
            local: connected.local,
            stream: connected.stream,
        })
    }

    async fn listen(&self, port: u16, family: Family) -> io::Result<Listening> {
        let family = match family {
            Family::V4 => baton_forwarding::Family::V4,
            Family::V6 => baton_forwarding::Family::V6,
            Family::Both => baton_forwarding::Family::Both,
        };
        let listening = Agent::listen(self, port, family).await;
        listening.map_err(|error| io::Error::from_raw_os_error(error.errno()))
    }
}

impl FarListening for Listening {
    type Stream = VirtualStream;

    async fn accept(&mut self) -> io::Result<Accepted<VirtualStream>> {
        let accepted = Listening::accept(self).await?;
        Ok(Accepted {
            peer: accepted.peer,
            local: accepted.local,
            stream: accepted.stream,
        })
    }
}

impl FarStream for VirtualStream {
    fn reset(self) {
        VirtualStream::reset(self);
    }
}
