//! What the programs report without being asked.

use std::{net::SocketAddr, time::Duration};

use baton_abi::{
    APP_EVENT_BIND_TAKEN, APP_EVENT_CALL, APP_EVENT_CALL_ENDED, APP_EVENT_LISTENERS,
    APP_EVENT_OPTIONS, AppEvent as Raw,
};
use libbpf_rs::MapHandle;
use zerocopy::FromBytes as _;

use super::{
    maps::address,
    options::{AppOptions, options},
};
use crate::{Error, ring::Ring};

/// Something that a socket of the control group did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppEvent {
    /// The socket connects, or still waits for the same connection.
    Call(AppCall),
    /// The socket has given up its call, or was refused.
    CallEnded {
        /// The socket's own number.
        cookie: u64,
    },
    /// A listener has come, gone or got options.
    Listeners,
    /// A program has set options of a connection.
    Options {
        /// The cookie of the socket that called, or the number that an arrival was announced with.
        connection: u64,
        /// All options that the program has set.
        options: AppOptions,
    },
    /// A program was refused a port that somebody else has at the I/O server.
    BindTaken {
        /// The address and port that the program asked for.
        wanted: SocketAddr,
    },
}

/// A socket's attempt to connect, as its SYN says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppCall {
    /// The socket's own number.
    pub cookie: u64,
    /// Its SYN's sequence number: tells one attempt of a socket from the next.
    pub seq: u32,
    /// Its own end, on loopback.
    pub at: SocketAddr,
    /// The address that the program wants to reach.
    pub wanted: SocketAddr,
    /// The options that the program has set before.
    pub options: AppOptions,
}

/// The reader's end of the ring of events.
pub struct AppEvents(Ring<AppEvent>);

impl AppEvents {
    pub(super) fn over(map: &MapHandle) -> Result<Self, Error> {
        Ok(Self(Ring::of("app_events", map, event)?))
    }

    /// Waits until there are events, or for this long. They are returned in the order in which they came.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn wait(&self, timeout: Duration) -> Result<impl Iterator<Item = AppEvent> + '_, Error> {
        self.0.wait(timeout)
    }
}

fn event(record: &[u8]) -> Option<AppEvent> {
    let (raw, _) = Raw::read_from_prefix(record).ok()?;
    match raw.kind {
        APP_EVENT_CALL => Some(AppEvent::Call(AppCall {
            cookie: raw.cookie,
            seq: raw.seq,
            at: address(&raw.at),
            wanted: address(&raw.other),
            options: options(&raw.options),
        })),
        APP_EVENT_CALL_ENDED => Some(AppEvent::CallEnded { cookie: raw.cookie }),
        APP_EVENT_LISTENERS => Some(AppEvent::Listeners),
        APP_EVENT_OPTIONS => Some(AppEvent::Options {
            connection: raw.cookie,
            options: options(&raw.options),
        }),
        APP_EVENT_BIND_TAKEN => Some(AppEvent::BindTaken {
            wanted: address(&raw.at),
        }),
        _ => None,
    }
}
