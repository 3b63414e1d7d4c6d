//! An established connection.

use std::fmt;

use crate::alert::{Alert, Level};
use crate::direction::Direction;
use crate::limits::Limits;
use crate::offload::Offload;
use crate::post_handshake::{KEY_UPDATE_NOT_REQUESTED, Partial, alerted, renegotiation};
use crate::record::{Content, LONGEST_PLAIN, RecordError, refused};
use crate::suite::{Suite, Version};

/// A key of TLS 1.3 protects this many records, and is then replaced. RFC 8446, section 5.5, allows AES-GCM about three
/// times as many.
pub(crate) const KEY_UPDATE_AFTER: u64 = 1 << 23;

/// A key of TLS 1.2 protects this many records, which are up to 64 TiB. TLS 1.2 cannot replace a key, and says nothing
/// about how long one may be used. An attacker who saw so many full records could tell them from noise with a
/// probability of about 2^-42 (RFC 8446, section 5.5, has 2^-57 for 2^24.5 of them, and it grows with the square).
pub(crate) const TLS12_ENDS_AFTER: u64 = 1 << 32;

/// Whether more can come from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// More can come.
    Open,
    /// The client has sent close_notify: it has said everything. In TLS 1.3 it may still listen.
    Closed,
}

/// An established TLS connection, seen from the server. One that another machine goes on with is
/// [exported](Self::export) here and imported there.
///
/// If the client's TCP connection ends before [`receive`](Self::receive) has returned [`Received::Closed`], somebody
/// may have cut the data short. The caller sees that, and decides what it means.
pub struct Session {
    pub(crate) server_name: Option<String>,
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) receiving: Direction,
    pub(crate) sending: Direction,
    pub(crate) partial: Partial,
    pub(crate) limits: Limits,
    pub(crate) ends: Ends,
    /// The client has asked for another key (update_requested), and has been sent none since.
    pub(crate) update_requested: bool,
    /// Set while the kernel makes the records that are sent.
    pub(crate) offload: Option<Box<Offload>>,
}

/// Which ends of a session are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The client has sent close_notify.
    pub(crate) client_closed: bool,
    /// The client has been sent close_notify.
    pub(crate) closed: bool,
    /// A fatal alert was sent or has come. No more is sent or received.
    pub(crate) failed: bool,
}

impl Session {
    /// A session whose handshake has just ended.
    pub(crate) fn new(
        (receiving, sending): (Direction, Direction),
        server_name: Option<String>,
        alpn: Option<Vec<u8>>,
    ) -> Self {
        Self {
            server_name,
            alpn,
            receiving,
            sending,
            partial: Partial::default(),
            limits: Limits::default(),
            ends: Ends::default(),
            update_requested: false,
            offload: None,
        }
    }

    /// The name of the server that the client asked for, in lower case.
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// The application protocol that was agreed upon (RFC 7301).
    pub fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    /// The cipher suite.
    pub fn suite(&self) -> Suite {
        self.sending.suite
    }

    /// The version of TLS.
    pub fn version(&self) -> Version {
        self.suite().version()
    }

    /// Takes all records that are whole off `input`, and appends their data to `plain`. The alert that tells the client of
    /// an error is appended to `output`.
    ///
    /// After close_notify, whatever else comes is thrown away (RFC 8446, section 6.1).
    ///
    /// # Errors
    /// The session has ended, with this error or before. Data of earlier records may have been appended to `plain`.
    pub fn receive(
        &mut self,
        input: &mut Vec<u8>,
        plain: &mut Vec<u8>,
        output: &mut Vec<u8>,
    ) -> Result<Received, RecordError> {
        if self.ends.failed {
            input.clear();
            return Err(RecordError::Ended);
        }
        let mut taken = 0;
        while !self.ends.client_closed {
            match self.receive_one(&mut input[taken..], plain) {
                Ok(Some(length)) => taken += length,
                Ok(None) => break,
                Err(error) => {
                    input.clear();
                    self.fail(error, output);
                    return Err(error);
                }
            }
        }
        match self.ends.client_closed {
            true => {
                input.clear();
                Ok(Received::Closed)
            }
            false => {
                input.drain(..taken);
                Ok(Received::Open)
            }
        }
    }

    /// Takes one record, if it is whole. Returns its length.
    fn receive_one(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
    ) -> Result<Option<usize>, RecordError> {
        let Some(length) = self.receiving.whole(input)? else {
            return Ok(None);
        };
        let is_tls13 = self.version() == Version::Tls13;
        let (content, bytes) = self.receiving.open(&mut input[..length])?;
        if content != Content::Handshake && !self.partial.is_none() {
            return Err(refused(
                Alert::UNEXPECTED_MESSAGE,
                "it came amid the parts of a handshake message",
            ));
        }
        match content {
            Content::Data if bytes.is_empty() => self.limits.empty()?,
            Content::Data => {
                plain.extend(bytes);
                self.limits.data();
            }
            Content::Alert => self.ends.client_closed = alerted(bytes, is_tls13, &mut self.limits)?,
            Content::Handshake if is_tls13 => {
                if let Some(asks) = self.partial.take(bytes)? {
                    self.limits.key_update()?;
                    self.receiving.update();
                    if asks {
                        self.note_update_request();
                    }
                }
            }
            Content::Handshake => return Err(renegotiation(bytes)),
        }
        Ok(Some(length))
    }

    /// Appends records with this data, of at most [`LONGEST_PLAIN`] bytes each. No data makes no record. If the client has
    /// asked for another key, a KeyUpdate is before them. While the kernel sends ([`Session::offload_sending`]), this
    /// appends the data as it is, and alerts are in [`Session::take_alert`].
    ///
    /// # Errors
    /// [`RecordError::Ended`], and nothing is sent; or [`RecordError::Exhausted`], and the data may be sent in part.
    pub fn send(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), RecordError> {
        if self.is_over() {
            return Err(RecordError::Ended);
        }
        if self.offload.is_some() {
            output.extend(plain);
            return Ok(());
        }
        for part in plain.chunks(LONGEST_PLAIN) {
            match self.version() {
                Version::Tls13
                    if self.update_requested || self.sending.sequence >= KEY_UPDATE_AFTER =>
                {
                    self.update_key(output);
                }
                Version::Tls12 if self.sending.sequence >= TLS12_ENDS_AFTER => {
                    self.close(output);
                    return Err(RecordError::Exhausted);
                }
                _ => {}
            }
            self.sending.seal(Content::Data, part, output);
        }
        Ok(())
    }

    /// Appends close_notify: everything has been said. Nothing can be sent after it, but data can still be received.
    pub fn close(&mut self, output: &mut Vec<u8>) {
        if !self.is_over() {
            self.send_alert(Alert::CLOSE_NOTIFY.message(Level::Warning), output);
            self.ends.closed = true;
        }
    }

    /// Appends a KeyUpdate, and goes on with the next key for what is sent (RFC 8446, section 4.6.3). That happens by
    /// itself before a key has protected too many records. TLS 1.2 has nothing like it, so there nothing happens. If the
    /// kernel makes the records, the session [is to end](Self::must_end) instead.
    pub fn update_key(&mut self, output: &mut Vec<u8>) {
        if self.is_over() || self.version() != Version::Tls13 {
            return;
        }
        if let Some(offload) = &mut self.offload {
            offload.is_worn_out = true;
            return;
        }
        self.sending
            .seal(Content::Handshake, &KEY_UPDATE_NOT_REQUESTED, output);
        self.sending.update();
        self.update_requested = false;
    }

    /// Notes that the client has asked for another key. The next data is sent with one, however often the client has asked
    /// before (RFC 8446, section 4.6.3). So the answers to a client that asks again and again, and reads nothing, take no
    /// memory.
    fn note_update_request(&mut self) {
        self.update_requested = true;
        if let Some(offload) = &mut self.offload {
            offload.is_worn_out = true;
        }
    }

    /// Ends the session because of an error, and tells the client unless the client has told it.
    pub(crate) fn fail(&mut self, error: RecordError, output: &mut Vec<u8>) {
        if let RecordError::Refused { alert, .. } = error
            && !self.is_over()
        {
            self.send_alert(alert.message(Level::Fatal), output);
        }
        self.ends.failed = true;
    }

    /// Appends an alert, or has the kernel send it.
    fn send_alert(&mut self, message: [u8; 2], output: &mut Vec<u8>) {
        match &mut self.offload {
            Some(offload) => offload.alert = Some(message),
            None => self.sending.seal(Content::Alert, &message, output),
        }
    }

    /// Whether nothing more may be sent.
    fn is_over(&self) -> bool {
        self.ends.closed || self.ends.failed
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("server_name", &self.server_name)
            .field("alpn", &self.alpn.as_deref().map(String::from_utf8_lossy))
            .field("receiving", &self.receiving)
            .field("sending", &self.sending)
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}
