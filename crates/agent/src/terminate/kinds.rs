//! Counts what happens in TLS by its kind, for the metrics: handshakes by version and suite, and alerts by their names.
//! A kind has a counter from its first event on. Clients decide which kinds there are, but only among known ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use baton_core::locked::locked;
use baton_tls::{Alert, RecordError, Suite, Version};

/// The counters of all services. A clone shares them.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinds(Arc<Mutex<BTreeMap<String, u64>>>);

impl Kinds {
    /// A handshake has come to its end.
    pub fn shaken(&self, suite: Suite) {
        let version = match suite.version() {
            Version::Tls12 => "1_2",
            Version::Tls13 => "1_3",
        };
        let name = suite.name().trim_start_matches("TLS_");
        self.count(format!(
            "tls_shaken_{version}_{}",
            name.to_ascii_lowercase()
        ));
    }

    /// A client was sent this alert because of an error.
    pub fn alert_sent(&self, alert: Alert) {
        self.count(format!("tls_alert_sent_{}", alert.name()));
    }

    /// A client has sent this alert, which ended its session.
    pub fn alert_received(&self, alert: Alert) {
        self.count(format!("tls_alert_received_{}", alert.name()));
    }

    /// A session has ended with this error.
    pub fn failed(&self, error: &RecordError) {
        match error {
            RecordError::Refused { alert, .. } => self.alert_sent(*alert),
            RecordError::Alerted(alert) => self.alert_received(*alert),
            RecordError::Exhausted | RecordError::Ended => {}
        }
    }

    fn count(&self, kind: String) {
        *locked(&self.0).entry(kind).or_default() += 1;
    }

    /// All counters, with their metrics' labels.
    pub fn all(&self) -> Vec<(String, u64)> {
        let counts = locked(&self.0);
        let counts = counts.iter().map(|(kind, count)| (kind.clone(), *count));
        counts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_counter() {
        let kinds = Kinds::default();
        kinds.shaken(Suite::Aes128GcmSha256);
        kinds.shaken(Suite::Aes128GcmSha256);
        kinds.shaken(Suite::EcdheRsaChacha20);
        kinds.failed(&RecordError::Refused {
            alert: Alert::BAD_RECORD_MAC,
            why: "of this test",
        });
        kinds.failed(&RecordError::Alerted(Alert::UNKNOWN_CA));
        kinds.failed(&RecordError::Ended);
        let all = kinds.all();
        let all: Vec<_> = all.iter().map(|(name, count)| (&**name, *count)).collect();
        assert_eq!(
            all,
            [
                ("tls_alert_received_unknown_ca", 1),
                ("tls_alert_sent_bad_record_mac", 1),
                ("tls_shaken_1_2_ecdhe_rsa_with_chacha20_poly1305_sha256", 1),
                ("tls_shaken_1_3_aes_128_gcm_sha256", 2),
            ]
        );
    }
}
