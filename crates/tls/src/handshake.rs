//! A handshake, which rustls makes.
//!
//! rustls is given one record at a time. So it never sees data that came behind the client's Finished, which belongs to
//! the session.

use std::sync::Arc;
use std::{fmt, mem};

use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{Error, PeerIncompatible};
use zeroize::Zeroizing;

use crate::acceptor::Acceptor;
use crate::alert::Alert;
use crate::direction::Direction;
use crate::established::{establish, suite_of};
use crate::record::{HEADER, LONGEST_PLAIN, RecordError, refused};
use crate::session::Session;
use crate::witness::Witness;

/// A client may send this many bytes until its handshake is done. A ClientHello is below 2 KiB, and early data that is
/// thrown away below 16 KiB.
const LONGEST_HANDSHAKE: usize = 64 << 10;

/// A longer record is none (RFC 5246, section 6.2.3).
const LONGEST_RECORD: usize = LONGEST_PLAIN + 2048;

/// The header of a record that cannot be. It makes rustls give up, and send an alert with the key of the moment.
const NO_RECORD: [u8; HEADER] = [0xff; HEADER];

/// Why a handshake did not come to its end.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HandshakeError {
    /// What the client sent does not begin like TLS.
    #[error("the client does not speak TLS on this port")]
    NotTls,
    /// The handshake failed, on either side.
    #[error("the TLS handshake failed: {0}")]
    Failed(#[from] Error),
    /// The client sent too much.
    #[error(
        "the client sent more than {LONGEST_HANDSHAKE} bytes without finishing its TLS handshake"
    )]
    TooLong,
    /// Something was behind the client's Finished in the same record.
    #[error("the TLS handshake failed at its very end: {0}")]
    Record(#[from] RecordError),
    /// The handshake has ended before, by an error or with a session.
    #[error("the TLS handshake is over already")]
    Over,
    /// rustls did not tell what it should. This is a defect of this program.
    #[error("rustls did not {0} in a TLS handshake: please report this as a defect of baton")]
    Unexpected(&'static str),
}

impl HandshakeError {
    /// The alert with which the client has ended the handshake, if it has.
    pub fn alert_received(&self) -> Option<Alert> {
        match self {
            Self::Failed(Error::AlertReceived(alert)) => Some(Alert::of_number((*alert).into())),
            Self::Record(RecordError::Alerted(alert)) => Some(*alert),
            _ => None,
        }
    }
}

/// How far a handshake is.
#[derive(Debug)]
pub enum Progress {
    /// The client must send more.
    More,
    /// The connection is established. What is left of the input is for the session.
    Done(Session),
}

/// A handshake under way.
pub struct Handshake {
    /// Once the handshake is over, this is the error that says so.
    rustls: Result<Box<Rustls>, HandshakeError>,
}

struct Rustls {
    connection: UnbufferedServerConnection,
    witness: Arc<Witness>,
    /// Records that rustls has not finished with, because they hold a part of a message.
    held: Vec<u8>,
    /// How many bytes were taken from the client.
    taken: usize,
    /// Whether a record was read with the client's handshake key.
    has_opened: bool,
    /// Whether the client has begun with a ClientHello of a version before TLS 1.2.
    is_old: bool,
}

enum Step {
    Sent,
    Blocked,
    Done,
}

impl Handshake {
    /// Begins a handshake.
    pub fn new(acceptor: &Acceptor) -> Self {
        let begin = |(connection, witness)| {
            Box::new(Rustls {
                connection,
                witness,
                held: Vec::new(),
                taken: 0,
                has_opened: false,
                is_old: false,
            })
        };
        Self {
            rustls: acceptor.begin().map(begin).map_err(HandshakeError::from),
        }
    }

    /// Takes what has come from the client off `input`, as far as it belongs to the handshake, and appends to `output`
    /// what the client is to be sent. That is an alert if the handshake fails.
    ///
    /// # Errors
    /// The handshake has failed, now or before. What is in `output` should still be sent.
    pub fn advance(
        &mut self,
        input: &mut Vec<u8>,
        output: &mut Vec<u8>,
    ) -> Result<Progress, HandshakeError> {
        let mut rustls = mem::replace(&mut self.rustls, Err(HandshakeError::Over))?;
        let mut taken = 0;
        let result = loop {
            match rustls.take_record(&input[taken..], output) {
                Ok((0, _)) => break Ok(false),
                Ok((length, is_done)) => {
                    taken += length;
                    if is_done {
                        break Ok(true);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        input.drain(..taken);
        match result {
            Ok(true) => {
                let mut session = establish(rustls.connection, &rustls.witness)?;
                // rustls itself refuses what is behind a Finished in the same record. Here it would be lost.
                if rustls.held.is_empty() {
                    return Ok(Progress::Done(session));
                }
                let error = refused(
                    Alert::UNEXPECTED_MESSAGE,
                    "something is behind the client's Finished in it",
                );
                session.fail(error, output);
                Err(error.into())
            }
            Ok(false) => {
                self.rustls = Ok(rustls);
                Ok(Progress::More)
            }
            Err(error) => {
                input.clear();
                rustls.flush(output);
                Err(rustls.say_version(error, output))
            }
        }
    }
}

impl Rustls {
    /// Takes a record if it is whole. Returns its length, or 0, and whether the handshake is done.
    fn take_record(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(usize, bool), HandshakeError> {
        let &[kind, major, _, high, low, ..] = input else {
            return Ok((0, false));
        };
        let length = HEADER + usize::from(u16::from_be_bytes([high, low]));
        if !(20..=23).contains(&kind) || major != 3 || length > HEADER + LONGEST_RECORD {
            self.give_up(output);
            return Err(match self.taken {
                0 => HandshakeError::NotTls,
                _ => Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType).into(),
            });
        }
        if self.taken + length > LONGEST_HANDSHAKE {
            self.give_up(output);
            return Err(HandshakeError::TooLong);
        }
        let Some(record) = input.get(..length) else {
            return Ok((0, false));
        };
        if self.taken == 0 {
            self.is_old = names_old_version(record);
        }
        self.taken += length;
        let before = self.held.len();
        self.held.extend(record);
        let is_done = self.run(output)?;
        let is_left = self.held.len() == before + length;
        if is_left && !is_done && self.is_early_data(record) {
            // rustls has passed it over, and would try again with each record that comes.
            self.held.truncate(before);
        }
        Ok((length, is_done))
    }

    /// Lets rustls work on what is held until it needs more. Returns whether the handshake is done.
    fn run(&mut self, output: &mut Vec<u8>) -> Result<bool, HandshakeError> {
        loop {
            let UnbufferedStatus { discard, state } =
                self.connection.process_tls_records(&mut self.held);
            let step = match state {
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, output).map(|()| Step::Sent)
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done(); // the caller sends it, as advance() says
                    Ok(Step::Sent)
                }
                Ok(ConnectionState::BlockedHandshake) => Ok(Step::Blocked),
                Ok(ConnectionState::WriteTraffic(_)) => Ok(Step::Done),
                // There is no early data, and rustls is given nothing that is behind the handshake.
                Ok(_) => Err(HandshakeError::Unexpected("leave data alone")),
                Err(error) => Err(error.into()),
            };
            self.held.drain(..discard);
            match step? {
                Step::Sent => {}
                Step::Blocked => return Ok(false),
                Step::Done => return Ok(!self.connection.is_handshaking()),
            }
        }
    }

    /// Whether a record of TLS 1.3 is one of early data, which the client was told not to send when it had done so
    /// (RFC 8446, section 4.2.10). Such a record cannot be read with the client's handshake key, and only after it come
    /// those that can.
    fn is_early_data(&mut self, record: &[u8]) -> bool {
        let secret = self
            .witness
            .client_handshake
            .get()
            .filter(|_| !self.has_opened);
        let suite = suite_of(&self.connection);
        let (Some(secret), Some(suite)) = (secret, suite) else {
            return false;
        };
        let Some(mut direction) = Direction::new(suite, secret.clone(), 0) else {
            return false;
        };
        let mut record = Zeroizing::new(record.to_vec());
        // Whatever is wrong inside a record is for rustls to say; it has been given it.
        let is_readable = !matches!(
            direction.open(&mut record),
            Err(RecordError::Refused {
                alert: Alert::BAD_RECORD_MAC,
                ..
            })
        );
        self.has_opened = is_readable;
        !is_readable
    }

    /// Tells a client that knows no version from TLS 1.2 on that this is why it is refused, by the alert protocol_version
    /// (RFC 5246, appendix E.1). Before rustls looks at the version, it misses an extension that came with TLS 1.2, and says
    /// that.
    fn say_version(&self, error: HandshakeError, output: &mut [u8]) -> HandshakeError {
        let misses = Error::from(PeerIncompatible::SignatureAlgorithmsExtensionRequired);
        if !self.is_old || error != HandshakeError::Failed(misses) {
            return error;
        }
        if Alert::at_end_of(output) == Some(Alert::HANDSHAKE_FAILURE)
            && let Some(number) = output.last_mut()
        {
            *number = Alert::PROTOCOL_VERSION.number();
        }
        Error::from(PeerIncompatible::Tls12NotOffered).into()
    }

    /// Lets rustls give up, with an alert.
    fn give_up(&mut self, output: &mut Vec<u8>) {
        self.held.extend(NO_RECORD);
        let refused = self.run(output);
        debug_assert!(refused.is_err());
    }

    /// Appends what rustls has to send still.
    fn flush(&mut self, output: &mut Vec<u8>) {
        while self.connection.wants_write() {
            let UnbufferedStatus { state, .. } =
                self.connection.process_tls_records(&mut self.held);
            let Ok(ConnectionState::EncodeTlsData(data)) = state else {
                break;
            };
            if encode(data, output).is_err() {
                break;
            }
        }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("is_over", &self.rustls.is_err())
            .finish_non_exhaustive()
    }
}

/// Whether a record begins with a ClientHello that names a version before TLS 1.2. Only an extension can name others.
fn names_old_version(record: &[u8]) -> bool {
    matches!(record, [22, _, _, _, _, 1, _, _, _, 3, ..=2, ..])
}

/// Appends what rustls has to send.
fn encode(
    mut data: EncodeTlsData<'_, ServerConnectionData>,
    output: &mut Vec<u8>,
) -> Result<(), HandshakeError> {
    let length = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        _ => 0,
    };
    let start = output.len();
    output.resize(start + length, 0);
    match data.encode(&mut output[start..]) {
        Ok(_) | Err(EncodeError::AlreadyEncoded) => Ok(()),
        Err(EncodeError::InsufficientSize(_)) => Err(HandshakeError::Unexpected(
            "tell the length of what it sends",
        )),
    }
}
