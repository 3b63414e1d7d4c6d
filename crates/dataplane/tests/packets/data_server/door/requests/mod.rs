//! Requests at the door, in every spelling: which of them the server here gets, which go to another data server, and
//! which the agent reads, because servers may read them in different ways. Each request comes once as the first of a
//! connection (ADOPT), and once as a further one on a connection that is here. The outcome is the same.
//!
//! In the tables `|` is the end of a line, and `{}` the number of a data server: `/ds1/` is this one's, `/ds2/` the
//! other one's.

mod bodies;
mod control;
mod headers;
mod hosts;
mod lines;
mod outcome;
mod packets;
mod targets;

use std::{
    io::Read as _,
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd as _,
};

use baton_abi::{Door, HostKey, RESPONSE_COMPLETE, RouteKey, SERVICE_HOSTS, SERVICE_PATHS};
use baton_wire::Message;
use libbpf_rs::{MapCore as _, MapFlags};
use zerocopy::{FromBytes as _, IntoBytes as _};

use self::outcome::{
    Kind::{self, Cut, Divided, Followed, GoesOn, Odd, Plain},
    Outcome,
};
use crate::{data_server::agent::reader::with_agent, prelude::*};

/// A case: its name, what its request is to the door, and the part of the request's text that makes the case.
pub type Case = (&'static str, Kind, &'static str);

/// Runs each case with a request for this data server, and with one for the other. `whole` makes a request of the
/// case's part.
pub fn run(cases: &[Case], whole: impl Fn(&str) -> String + Sync) {
    meet_all(|at| {
        for (name, kind, part) in cases {
            let text = whole(part).replace('|', "\r\n");
            for (number, is_here) in [("1", true), ("2", false)] {
                at.meets(
                    name,
                    text.replace("{}", number),
                    Outcome::of(*kind, is_here),
                );
            }
        }
    });
}

/// Runs these cases: the whole text of a request, and what becomes of it.
pub fn run_whole(cases: &[(&str, Outcome)]) {
    meet_all(|at| {
        for (text, outcome) in cases {
            at.meets(text, text.replace('|', "\r\n"), *outcome);
        }
    });
}

/// Runs the cases at a data server, and then reports all that have failed.
pub fn meet_all(cases: impl Fn(&mut DataServer) + Sync) {
    let _host = own_host();
    let mut at = DataServer::new(SERVICE_PATHS | SERVICE_HOSTS);
    cases(&mut at);
    at.report();
}

/// Data server 0 with its server and its agent. All paths of the host `a.test` are data server 1's.
pub struct DataServer {
    live: Live,
    agent: TcpListener,
    failures: Vec<String>,
}

impl DataServer {
    /// Makes the data server of a service with these flags.
    pub fn new(flags: u32) -> Self {
        let (live, agent) = with_agent();
        let plane = live.node.plane();
        let pool = |server: u16| u32::from(first_pool_of_one() + server);
        let routes = [
            (0, "/ds1/", pool(0)),
            (0, "/ds2/", pool(1)),
            (1, "/", pool(1)),
        ]
        .map(|(host, path, pool)| (RouteKey::of(0, host, path.as_bytes()).unwrap(), pool));
        plane.routing().unwrap().set_routes(&routes).unwrap();
        let host = HostKey::exact("a.test").unwrap();
        plane.routing().unwrap().set_hosts(&[(host, 1)]).unwrap();
        owns(&live.node, flags);
        Self {
            live,
            agent,
            failures: Vec::new(),
        }
    }

    /// Notes a failure if a request with this text does not meet this outcome.
    pub fn meets(&mut self, name: &str, text: impl AsRef<[u8]>, outcome: Outcome) {
        self.meets_packet(name, outcome, |packet| packet.payload(text.as_ref()));
    }

    /// Notes a failure if the packet that `change` makes of an empty one does not meet this outcome.
    pub fn meets_packet(
        &mut self,
        name: &str,
        outcome: Outcome,
        change: impl Fn(Segment) -> Segment,
    ) {
        for is_first in [true, false] {
            let Err(error) = self.try_packet(is_first, outcome, &change) else {
                continue;
            };
            let way = if is_first {
                "ADOPT"
            } else {
                "a further request"
            };
            self.failures.push(format!("{name}, {way}: {error}"));
            self.forget();
        }
    }

    /// Removes what a failed case has left behind, so that the next case does not see it.
    fn forget(&mut self) {
        for listener in [&self.live.listener, &self.agent] {
            while !nothing_to_accept(listener) {}
        }
        self.live.wire = Wire::tapped();
        self.live.node.look();
    }

    pub fn report(&self) {
        let failures = &self.failures;
        let all = failures.join("\n");
        assert!(
            failures.is_empty(),
            "{} have failed:\n{all}",
            failures.len()
        );
    }

    fn try_packet(
        &mut self,
        is_first: bool,
        outcome: Outcome,
        change: impl Fn(Segment) -> Segment,
    ) -> Result<(), String> {
        let live = &mut self.live;
        let packet = if is_first {
            live.client = Client::fresh();
            let packet = change(live.client.ack(COOKIE).flags("PA"));
            send_adopt(&live.node, &packet);
            packet
        } else {
            live.another();
            let packet = change(live.request());
            live.forward(&packet);
            packet
        };
        has_counted(&live.node, &outcome.counted(is_first))?;
        match outcome {
            Outcome::Here(next) => {
                let cut = usize::try_from(-next).unwrap_or(0);
                self.server_gets(is_first, &packet.payload[..packet.payload.len() - cut])?;
            }
            Outcome::HereFollowed => self.server_gets(is_first, &packet.payload)?,
            Outcome::Elsewhere => self.other_gets(is_first, &packet),
            Outcome::Agent => gets(&accept(&self.agent).0, &packet.payload)?,
        }
        self.next_begins(is_first, outcome, &packet)?;
        let is_alone = nothing_to_accept(&self.live.listener) && nothing_to_accept(&self.agent);
        is_alone
            .then_some(())
            .ok_or_else(|| "somebody else has a connection".into())
    }

    fn server_gets(&mut self, is_first: bool, text: &[u8]) -> Result<(), String> {
        if is_first {
            self.live.stream = accept(&self.live.listener).0;
        }
        gets(&self.live.stream, text)
    }

    fn other_gets(&self, is_first: bool, packet: &Segment) {
        for is_adopt in [!is_first, is_first] {
            if is_adopt {
                let adopts = self.live.message_to(ds(1), ds_mac(1));
                assert!(matches!(adopts.message, Message::Adopt { .. }));
                assert_eq!(adopts.packet, packet.packet());
            } else {
                let told = self.live.message_to(CS, CS_MAC);
                assert!(matches!(told.message, Message::Moved { .. }));
            }
        }
    }

    /// Checks that the door expects the next request where the outcome says, if the server here got this one.
    fn next_begins(
        &self,
        is_first: bool,
        outcome: Outcome,
        packet: &Segment,
    ) -> Result<(), String> {
        if !matches!(outcome, Outcome::Here(_) | Outcome::HereFollowed) {
            return Ok(());
        }
        let door = self.door(is_first);
        let is_followed = u32::from(door.body.state) != RESPONSE_COMPLETE;
        let end = packet.seq.wrapping_add(packet.payload.len() as u32);
        let next = door.next.wrapping_sub(end).cast_signed();
        let found = if is_followed {
            Outcome::HereFollowed
        } else {
            Outcome::Here(next)
        };
        (found == outcome)
            .then_some(())
            .ok_or_else(|| format!("{found:?}"))
    }

    /// Returns the connection's door. It lies in `doors_begun`, by the connection's ports, until the second packet of
    /// the connection comes, and from then on with the socket, in `doors`.
    fn door(&self, is_first: bool) -> Door {
        let live = &self.live;
        let found = if is_first {
            let key = live.node.tcb_key(&live.client);
            map_named(live.node.plane(), "doors_begun").lookup(key.as_bytes(), MapFlags::ANY)
        } else {
            let socket = live.stream.as_raw_fd().to_ne_bytes();
            map_named(live.node.plane(), "doors").lookup(&socket, MapFlags::ANY)
        };
        Door::read_from_bytes(&found.unwrap().unwrap()).unwrap()
    }
}

fn gets(mut stream: &TcpStream, text: &[u8]) -> Result<(), String> {
    let mut bytes = vec![0; text.len()];
    let read = stream.read_exact(&mut bytes);
    match read {
        Ok(()) if bytes == text => Ok(()),
        _ => Err(format!("{read:?}: {}", String::from_utf8_lossy(&bytes))),
    }
}
