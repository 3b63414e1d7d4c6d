//! `[service.health]`: how a data server checks its own local server.

use std::num::NonZeroU8;
use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use crate::reading::problem::Problem;
use crate::reading::report::Report;
use crate::reading::schema::{Table as _, keys};
use crate::reading::value::text;
use crate::values::duration::{HOUR, MILLISECOND, duration};
use crate::values::name::name;
use crate::values::number::number;
use crate::values::words::words;

/// How a data server checks its own local server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What each try does.
    pub probe: Probe,
    /// The time between two tries, 10 ms to 1 h.
    pub interval: Duration,
    /// The time after which a try has failed, at least 1 ms and shorter than `interval`.
    pub timeout: Duration,
    /// The number of successful tries after which the server counts as healthy.
    pub rise: NonZeroU8,
    /// The number of failed tries after which the server counts as unhealthy.
    pub fall: NonZeroU8,
}

/// What a health check tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The try succeeds if a TCP connection is accepted.
    Tcp,
    /// The try succeeds if a GET of this path is answered with a status of 200-399.
    Http(HttpPath),
}

/// Path of an HTTP request: begins with `/`, visible ASCII only, at most 1024 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPath(String);

name!(HttpPath, request_path);

fn request_path(text: &str) -> Result<(), Problem> {
    let legal = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.starts_with('/') && legal && text.len() <= 1024 {
        return Ok(());
    }
    let what = format!(
        "path = \"{}\" is not the path of a request",
        text.escape_debug()
    );
    let remedy = "begin with / and write no spaces; percent-encode what is not ASCII";
    Err(Problem::new(what, remedy))
}

words! {
    pub(crate) enum Kind "kind" {
        Tcp = "tcp",
        Http = "http",
        None = "none",
    }
}

keys! {
    /// How each data server checks its own local server.
    Keys "[service.health]" {
        /// What is tried: "tcp", "http", or "none"
        kind: Kind = text, default "tcp", sample "http";
        /// for "http", which expects a status of 200-399
        path: HttpPath = text, default "/";
        /// the time from one check to the next
        interval: Duration = duration(10 * MILLISECOND..=HOUR), default "1s";
        /// the time after which a check has failed
        timeout: Duration = duration(MILLISECOND..=HOUR), default "500ms";
        /// passes after which the server is taken in
        rise: NonZeroU8 = number(1..=u8::MAX), default 1;
        /// failures after which the server is taken out
        fall: NonZeroU8 = number(1..=u8::MAX), default 2;
    }
}

impl Keys {
    /// Reports a path that no check asks for, and a timeout that is not shorter than the interval.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        if let (Some(Kind::Tcp), Some(path)) = (self.kind.get(), self.path.given()) {
            let what = "path means nothing to a check of kind \"tcp\"";
            report.error(path.span(), what, "add kind = \"http\"");
        }
        if let (Some(interval), Some(timeout)) = (self.interval.get(), self.timeout.get())
            && timeout >= interval
        {
            let [shown, longest] = [*timeout, *interval].map(humantime::format_duration);
            report.error(
                self.timeout.span().or(self.interval.span()),
                format!("timeout ({shown}) is not shorter than interval ({longest})"),
                "shorten timeout or lengthen interval: one check ends before the next begins",
            );
        }
    }

    /// The check, if all of the section could be read. The inner `None` means kind "none". Under that kind the other
    /// keys are checked too, and then ignored, so that a check can be switched off by one word.
    pub(crate) fn finish(self) -> Option<Option<HealthCheck>> {
        let kind = self.kind.value()?;
        let path = self.path.value()?;
        let check = HealthCheck {
            probe: match kind {
                Kind::Http => Probe::Http(path),
                Kind::Tcp | Kind::None => Probe::Tcp,
            },
            interval: self.interval.value()?,
            timeout: self.timeout.value()?,
            rise: self.rise.value()?,
            fall: self.fall.value()?,
        };
        Some((kind != Kind::None).then_some(check))
    }
}

/// The check of a service without `[service.health]`.
impl Default for HealthCheck {
    fn default() -> Self {
        let mut report = Report::new(Path::new(""), "");
        let keys = Keys::read(&mut report, 0..0, DeTable::new());
        keys.finish().flatten().expect("a test reads all defaults")
    }
}
