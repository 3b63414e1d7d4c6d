//! What a connection takes with it when it moves to another data server's agent.

use std::fmt;

use baton_tls::{ImportError, Session};
use zeroize::Zeroizing;

use super::messages::Secret;

/// A session, and what has come of its client and went to no server yet.
pub(super) struct State {
    /// Tells this connection from all others, also from those that have had the same addresses and ports before.
    pub id: u64,
    pub session: Session,
    /// Records of the client that are not whole yet.
    pub client_in: Vec<u8>,
    /// Data of the client for which it is too early, or which goes elsewhere.
    pub plain: Vec<u8>,
}

/// These bytes are no state.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadState {
    /// They end too soon.
    Short,
    /// The session cannot go on here.
    Session(ImportError),
}

impl fmt::Display for BadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("the state of a TLS connection ends too soon"),
            Self::Session(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadState {}

impl State {
    /// The state as bytes: the id; session and data, each behind its length; and the records.
    pub fn pack(self) -> Secret {
        let session = self.session.export();
        let room = 16 + session.len() + self.plain.len() + self.client_in.len();
        let mut bytes = Zeroizing::new(Vec::with_capacity(room));
        bytes.extend(self.id.to_be_bytes());
        for part in [&session[..], &self.plain] {
            // No part is near 4 GiB: `ROOM` bounds data, and a session is some hundred bytes.
            bytes.extend((part.len() as u32).to_be_bytes());
            bytes.extend(part);
        }
        bytes.extend(&self.client_in);
        bytes
    }

    /// The state that was packed.
    pub fn unpack(bytes: &[u8]) -> Result<Self, BadState> {
        let (id, rest) = bytes.split_first_chunk().ok_or(BadState::Short)?;
        let (session, rest) = part(rest).ok_or(BadState::Short)?;
        let (plain, client_in) = part(rest).ok_or(BadState::Short)?;
        Ok(Self {
            id: u64::from_be_bytes(*id),
            session: Session::import(session).map_err(BadState::Session)?,
            client_in: client_in.to_vec(),
            plain: plain.to_vec(),
        })
    }
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}
