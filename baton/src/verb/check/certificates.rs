//! What is wrong with the certificates of services whose agents speak TLS.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use baton_config::{Config, HostPattern, Service, Terminate};
use baton_tls::{About, Certificates};

const DAY: Duration = Duration::from_secs(86_400);
/// A certificate that expires within this time is to be replaced now. Those of common authorities that renew by
/// themselves have 30 days left.
const SOON: Duration = Duration::from_secs(14 * 86_400);

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// These keep a data server from serving.
    pub errors: Vec<String>,
    /// These do not.
    pub warnings: Vec<String>,
}

/// Looks at the certificates that a configuration in this directory names.
pub fn look(config: &Config, directory: &Path, now: SystemTime) -> Findings {
    let mut findings = Findings::default();
    for service in &config.services {
        if let Some(terminate) = &service.terminate {
            findings.look_at(service, terminate, directory, now);
        }
    }
    findings
}

impl Findings {
    fn look_at(
        &mut self,
        service: &Service,
        terminate: &Terminate,
        directory: &Path,
        now: SystemTime,
    ) {
        let name = &service.name;
        let paths = terminate
            .certificates
            .iter()
            .map(|file| directory.join(file));
        // Only data servers need the files.
        let (here, elsewhere): (Vec<PathBuf>, Vec<_>) = paths.partition(|path| path.exists());
        self.warnings.extend(elsewhere.iter().map(|path| {
            let path = path.display();
            format!("service {name}: {path} is not here: each data server of the service needs it")
        }));
        if here.is_empty() {
            return;
        }
        let certificates = match Certificates::load(&here) {
            Ok(certificates) => certificates,
            Err(error) => {
                self.errors.push(format!("service {name}: {error}"));
                return;
            }
        };
        let exposed = certificates.warnings().iter().map(ToString::to_string);
        let old = certificates.about().iter().filter_map(|one| age(one, now));
        let of_service = exposed
            .chain(old)
            .map(|what| format!("service {name}: {what}"));
        self.warnings.extend(of_service);
        if !elsewhere.is_empty() {
            return;
        }
        for route in &service.routes {
            let host = match &route.host {
                HostPattern::Any => continue,
                HostPattern::Exact(name) => name.to_string(),
                HostPattern::Below(name) => format!("*.{name}"),
            };
            if !certificates.are_for(&host) {
                self.warnings.push(format!(
                    "service {name}: a route is for {host}, and no certificate is: its clients see that of another name"
                ));
            }
        }
    }
}

/// What is wrong with the time in which a certificate is valid.
fn age(about: &About, now: SystemTime) -> Option<String> {
    let file = about.file.display();
    if let Ok(wait) = about.valid.start.duration_since(now)
        && !wait.is_zero()
    {
        let days = wait.div_duration_f64(DAY);
        return Some(format!(
            "the certificate in {file} is valid only in {days:.1} days"
        ));
    }
    match about.valid.end.duration_since(now) {
        Err(past) => Some(format!(
            "the certificate in {file} expired {:.1} days ago: replace it, and run `baton reload`",
            past.duration().div_duration_f64(DAY)
        )),
        Ok(left) if left < SOON => Some(format!(
            "the certificate in {file} expires in {:.1} days: replace it, and run `baton reload`",
            left.div_duration_f64(DAY)
        )),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(from: u64, to: u64) -> About {
        let at = |days| SystemTime::UNIX_EPOCH + DAY * days;
        About {
            file: "a.pem".into(),
            names: Vec::new(),
            valid: at(from as u32)..at(to as u32),
        }
    }

    #[test]
    fn a_certificate_is_valid_for_a_time() {
        let now = SystemTime::UNIX_EPOCH + DAY * 100;
        for (from, to, says) in [
            (90, 200, None),
            (90, 114, None),
            (90, 113, Some("expires in 13.0 days")),
            (90, 99, Some("expired 1.0 days ago")),
            (102, 200, Some("valid only in 2.0 days")),
        ] {
            let found = age(&about(from, to), now);
            match says {
                None => assert_eq!(found, None),
                Some(says) => assert!(
                    found.as_ref().is_some_and(|it| it.contains(says)),
                    "{found:?}"
                ),
            }
        }
    }
}
