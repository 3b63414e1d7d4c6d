//! Alerts (RFC 8446, section 6, and RFC 5246, section 7.2).

use std::fmt;

/// What an alert says. In TLS 1.3, only this counts and not the alert's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Alert(u8);

/// How bad an alert is, as the record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Warning = 1,
    Fatal = 2,
}

macro_rules! alerts {
    ($($constant:ident = $number:literal, $name:literal;)*) => {
        impl Alert {
            $(#[doc = concat!("The alert `", $name, "`.")] pub const $constant: Self = Self($number);)*

            /// The alert's name in the RFCs, or `unknown`.
            pub fn name(self) -> &'static str {
                match self.0 { $($number => $name,)* _ => "unknown" }
            }
        }
    };
}

alerts! {
    CLOSE_NOTIFY = 0, "close_notify";
    UNEXPECTED_MESSAGE = 10, "unexpected_message";
    BAD_RECORD_MAC = 20, "bad_record_mac";
    RECORD_OVERFLOW = 22, "record_overflow";
    HANDSHAKE_FAILURE = 40, "handshake_failure";
    BAD_CERTIFICATE = 42, "bad_certificate";
    UNSUPPORTED_CERTIFICATE = 43, "unsupported_certificate";
    CERTIFICATE_REVOKED = 44, "certificate_revoked";
    CERTIFICATE_EXPIRED = 45, "certificate_expired";
    CERTIFICATE_UNKNOWN = 46, "certificate_unknown";
    ILLEGAL_PARAMETER = 47, "illegal_parameter";
    UNKNOWN_CA = 48, "unknown_ca";
    ACCESS_DENIED = 49, "access_denied";
    DECODE_ERROR = 50, "decode_error";
    DECRYPT_ERROR = 51, "decrypt_error";
    PROTOCOL_VERSION = 70, "protocol_version";
    INSUFFICIENT_SECURITY = 71, "insufficient_security";
    INTERNAL_ERROR = 80, "internal_error";
    INAPPROPRIATE_FALLBACK = 86, "inappropriate_fallback";
    USER_CANCELED = 90, "user_canceled";
    NO_RENEGOTIATION = 100, "no_renegotiation";
    MISSING_EXTENSION = 109, "missing_extension";
    UNSUPPORTED_EXTENSION = 110, "unsupported_extension";
    UNRECOGNIZED_NAME = 112, "unrecognized_name";
    NO_APPLICATION_PROTOCOL = 120, "no_application_protocol";
}

impl Alert {
    /// The alert's number in IANA's registry.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The fatal alert with which these records end, if it is not encrypted.
    pub fn at_end_of(records: &[u8]) -> Option<Self> {
        match records.last_chunk() {
            Some([21, 3, _, 0, 2, 2, number]) => Some(Self(*number)),
            _ => None,
        }
    }

    pub(crate) fn of_number(number: u8) -> Self {
        Self(number)
    }

    /// The alert as the content of a record.
    pub(crate) fn message(self, level: Level) -> [u8; 2] {
        [level as u8, self.0]
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_seen_behind_other_records() {
        let records = [22, 3, 3, 0, 1, 14, 21, 3, 3, 0, 2, 2, 120];
        let alert = Alert::at_end_of(&records);
        assert_eq!(alert, Some(Alert::NO_APPLICATION_PROTOCOL));
        for cut in 0..records.len() {
            assert_eq!(Alert::at_end_of(&records[..cut]), None);
        }
        // An alert that is encrypted, and a warning.
        assert_eq!(Alert::at_end_of(&[23, 3, 3, 0, 2, 2, 120]), None);
        assert_eq!(Alert::at_end_of(&[21, 3, 3, 0, 2, 1, 0]), None);
    }
}
