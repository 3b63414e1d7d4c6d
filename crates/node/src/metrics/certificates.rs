//! Metrics of the certificates that a data server's agent shows clients.

use prometheus_client::registry::Registry;

use super::gauges;
use crate::status::Status;

/// Adds when each certificate expires, or nothing if there are none.
pub fn register(registry: &mut Registry, status: &Status) {
    if status.certificates.is_empty() {
        return;
    }
    let rows = status.certificates.iter().map(|certificate| {
        let labels = vec![
            ("service", certificate.service.clone()),
            ("name", certificate.name.clone()),
            ("file", certificate.file.clone()),
        ];
        (labels, certificate.not_after)
    });
    gauges(
        registry,
        "certificate_not_after_timestamp_seconds",
        "When the certificate that clients of the service are shown expires, in seconds since 1970; `name` is the first \
         that it is for",
        rows,
    );
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use crate::status::{Certificate, example};

    #[test]
    fn each_certificate_expires() {
        let mut status = example();
        let metrics = text(&status).expect("writing to a String does not fail");
        assert!(!metrics.contains("certificate"), "{metrics}");
        status.certificates = [("a.pem", 1_900_000_000), ("b.pem", 0)]
            .map(|(file, not_after)| Certificate {
                service: "web".into(),
                file: file.into(),
                name: "www.example.org".into(),
                not_after,
            })
            .into();
        let metrics = text(&status).expect("writing to a String does not fail");
        for (file, value) in [("a.pem", "1900000000"), ("b.pem", "0")] {
            let line = format!(
                "baton_certificate_not_after_timestamp_seconds{{service=\"web\",name=\"www.example.org\",file=\"{file}\"}} \
                 {value}\n"
            );
            assert!(metrics.contains(&line), "{line}{metrics}");
        }
    }
}
