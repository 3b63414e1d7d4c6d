//! Messages in an established session that are not data.

use crate::alert::{Alert, Level};
use crate::limits::Limits;
use crate::record::{RecordError, refused};

/// How the message KeyUpdate begins: its type, and the length of what follows (RFC 8446, section 4.6.3).
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];
/// The whole message KeyUpdate that asks for none in return.
pub(crate) const KEY_UPDATE_NOT_REQUESTED: [u8; 5] = [24, 0, 0, 1, 0];
/// The type of the message ClientHello.
const CLIENT_HELLO: u8 = 1;

/// The beginning of a handshake message that came in parts. It is always shorter than a KeyUpdate.
#[derive(Debug, Default)]
pub(crate) struct Partial(Vec<u8>);

impl Partial {
    /// The part that has come; `None` if none can begin like this.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let may_be = KEY_UPDATE.starts_with(bytes);
        may_be.then(|| Self(bytes.to_vec()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the content of a handshake record of TLS 1.3. Of all messages only a KeyUpdate may come, because nothing
    /// has been asked of the client that others could answer. It ends its record, because the next one has another key
    /// (RFC 8446, section 5.1). Returns whether a KeyUpdate is now whole, and then whether it asks for one in return.
    ///
    /// # Errors
    /// It is anything else.
    pub(crate) fn take(&mut self, content: &[u8]) -> Result<Option<bool>, RecordError> {
        if content.is_empty() {
            return Err(refused(
                Alert::UNEXPECTED_MESSAGE,
                "it is an empty handshake record",
            ));
        }
        // One byte more than a KeyUpdate has shows that more is behind.
        self.0.extend(content.iter().take(KEY_UPDATE.len() + 2));
        let (start, rest) = self.0.split_at(self.0.len().min(KEY_UPDATE.len()));
        if start[0] != KEY_UPDATE[0] {
            return Err(refused(
                Alert::UNEXPECTED_MESSAGE,
                "of all handshake messages only a KeyUpdate may come",
            ));
        }
        if !KEY_UPDATE.starts_with(start) {
            return Err(refused(
                Alert::DECODE_ERROR,
                "its KeyUpdate does not have a KeyUpdate's length",
            ));
        }
        let asks = match rest {
            [] => return Ok(None),
            [0] => false,
            [1] => true,
            [_] => {
                return Err(refused(
                    Alert::ILLEGAL_PARAMETER,
                    "its KeyUpdate asks for something unknown",
                ));
            }
            [..] => {
                return Err(refused(
                    Alert::UNEXPECTED_MESSAGE,
                    "something is behind its KeyUpdate",
                ));
            }
        };
        self.0.clear();
        Ok(Some(asks))
    }
}

/// The error that a handshake record of TLS 1.2 is. A ClientHello asks for another handshake. RFC 5246, section 7.2.2,
/// lets a server refuse that by a warning, and leaves it to the client whether it goes on. As BoringSSL's servers do,
/// this one ends the session: no client that needs a second handshake is served better by data it did not wait for.
pub(crate) fn renegotiation(content: &[u8]) -> RecordError {
    match content.first() {
        Some(&CLIENT_HELLO) => refused(Alert::NO_RENEGOTIATION, "it asks for another handshake"),
        _ => refused(
            Alert::UNEXPECTED_MESSAGE,
            "no handshake message may come after the handshake",
        ),
    }
}

/// Takes the content of an alert record. Returns whether it is close_notify; otherwise the session goes on.
///
/// # Errors
/// The alert ends the session, or there were too many.
pub(crate) fn alerted(
    content: &[u8],
    is_tls13: bool,
    limits: &mut Limits,
) -> Result<bool, RecordError> {
    let &[level, number] = content else {
        return Err(refused(
            Alert::DECODE_ERROR,
            "it is an alert without an alert's length",
        ));
    };
    let alert = Alert::of_number(number);
    // TLS 1.3 has only these two that are no errors (RFC 8446, section 6.1), and ignores levels.
    let is_warning = match is_tls13 {
        true => alert == Alert::USER_CANCELED,
        false => level == Level::Warning as u8,
    };
    match alert {
        Alert::CLOSE_NOTIFY => Ok(true),
        _ if is_warning => limits.warning().map(|()| false),
        _ => Err(RecordError::Alerted(alert)),
    }
}
