//! Reads the head of a request, as far as its first segment holds it, in the same way as servers do.
//!
//! What nginx refuses is refused here, because a server that accepts it may understand it differently from the
//! routes. What nginx accepts is accepted: empty lines before the request, several blanks between the words of
//! its line, lines that end without a carriage return, a missing version.

use baton_wire::Path;

use super::bad_request::BadRequest;
use super::{Body, framing, header::Header, target::Target};

/// What can be read of a request. If the header does not end in this segment, only its complete lines are
/// included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: Vec<u8>,
    /// The target as routes compare it: the path, a question mark and the query.
    target: Vec<u8>,
    /// The path, with which `target` begins.
    path: Path,
    /// Whether the path ends in this segment.
    has_path: bool,
    /// Whether the target ends in this segment.
    is_whole: bool,
    /// Whether the header ends in this segment.
    has_header: bool,
    /// Whether the request's version of HTTP has chunks.
    has_chunks: bool,
    /// The host that the target names, otherwise that of the `Host` line.
    host: Option<String>,
    headers: Vec<(String, Vec<u8>)>,
}

impl Request {
    /// Reads the first bytes of a connection, or of a further request on it. `None` if there are too few of them
    /// to say anything, because the rest of the first line is still to come.
    ///
    /// # Errors
    /// The bytes begin no request that servers answer.
    pub fn read(text: &[u8]) -> Result<Option<Self>, BadRequest> {
        let is_blank = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let begin = text.iter().position(|byte| !is_blank(byte));
        let text = &text[begin.unwrap_or(text.len())..];
        let (line, rest) = match text.iter().position(|&byte| byte == b'\n') {
            Some(end) => (without_return(&text[..end]), Some(&text[end + 1..])),
            // The line feed may come with the next segment.
            None => (without_return(text), None),
        };
        let method_ends = line.iter().position(|&byte| byte == b' ');
        let method = &line[..method_ends.unwrap_or(line.len())];
        if !method.iter().copied().all(is_token) {
            return Err(BadRequest::Method);
        }
        let behind = blanks_off(&line[method.len()..]);
        if behind.is_empty() && rest.is_none() {
            return Ok(None);
        }
        if method.is_empty() || behind.is_empty() {
            return Err(BadRequest::Method);
        }
        let target_ends = behind.iter().position(|&byte| byte == b' ');
        let (target, version) = behind.split_at(target_ends.unwrap_or(behind.len()));
        let is_whole = rest.is_some() || target_ends.is_some();
        let version = blanks_off(version);
        if rest.is_some() && !is_version(method, version) {
            return Err(BadRequest::Version);
        }
        let is_old = version.is_empty() && rest.is_some();
        let header = match rest {
            Some(rest) if !is_old => Header::read(rest)?,
            _ => Header::none(is_old),
        };
        let named = header.host()?;
        let target = Target::read(method, target, is_whole)?;
        Ok(Some(Self {
            method: method.to_owned(),
            target: target.spelled(),
            path: target.path,
            has_path: target.has_path,
            is_whole,
            has_header: header.is_whole,
            has_chunks: has_chunks(version),
            host: target.host.or(named),
            headers: header.lines,
        }))
    }

    /// The request's method.
    pub fn method(&self) -> &[u8] {
        &self.method
    }

    /// The request's target as routes compare it: the path in its one spelling, and the query as it was sent. If
    /// the segment ends in the target, more of it may follow.
    pub fn target(&self) -> &[u8] {
        &self.target
    }

    /// The path of the request's target, as far as it is here.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path without any encoding, if all of it is here.
    pub fn decoded_path(&self) -> Option<Vec<u8>> {
        self.has_path.then(|| self.path.decoded())
    }

    /// Whether the header of the request is here to its end.
    pub fn has_head(&self) -> bool {
        self.has_header
    }

    /// How far the body behind the header goes, if all of the header is here.
    pub fn body(&self) -> Body {
        if self.is_coded_too_early() {
            return Body::Unknown;
        }
        Body::of(&self.headers)
    }

    /// How far the body goes, like [`Request::body`], for a caller that sees whether the server switches to
    /// another protocol: something else follows only then.
    pub fn body_before_switch(&self) -> Body {
        if self.is_coded_too_early() {
            return Body::Unknown;
        }
        Body::of_request(&self.headers)
    }

    /// Whether the request has a transfer coding though its version of HTTP has none: some servers ignore that
    /// line (RFC 9112, 6.1).
    fn is_coded_too_early(&self) -> bool {
        !self.has_chunks && self.headers("transfer-encoding").next().is_some()
    }

    /// Whether the request asks for another protocol (Upgrade).
    pub fn asks_to_switch(&self) -> bool {
        framing::asks_to_switch(&self.headers)
    }

    /// The host in lower case, without its port and without a dot at its end; empty if none is named. The host
    /// of an absolute target takes precedence over that of the header (RFC 9112, 3.2.2).
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or_default()
    }

    /// The values of the header lines with this name.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = move |header: &&(String, Vec<u8>)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| &**value)
    }

    /// The values of the cookies with this name.
    pub fn cookies(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = self.headers("cookie");
        lines.flat_map(move |line| named(line, b';', name))
    }

    /// The values of the parameters with this name, if the query is here to its end.
    pub fn queries(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let query = self.target.get(self.path.as_bytes().len() + 1..);
        query
            .filter(|_| self.is_whole)
            .into_iter()
            .flat_map(move |query| named(query, b'&', name))
    }
}

/// Whether a byte may be part of a method.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether `text` is a version of HTTP. No version means HTTP/0.9, which has GET only and no header.
fn is_version(method: &[u8], text: &[u8]) -> bool {
    let number = text.trim_ascii_end().strip_prefix(b"HTTP/");
    match number {
        Some(number) => {
            let mut parts = number.splitn(2, |&byte| byte == b'.');
            let is_number = |part: Option<&[u8]>| {
                part.is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
            };
            is_number(parts.next()) && is_number(parts.next())
        }
        None => text.is_empty() && method == b"GET",
    }
}

/// Whether a valid version is HTTP/1.1 or later, which has chunks.
fn has_chunks(text: &[u8]) -> bool {
    let text = std::str::from_utf8(text).unwrap_or_default().trim_end();
    let numbers = (text.strip_prefix("HTTP/")).and_then(|number| number.split_once('.'));
    let number = |digits: &str| digits.parse::<u32>().ok();
    numbers.is_some_and(|(major, minor)| (number(major), number(minor)) >= (Some(1), Some(1)))
}

fn blanks_off(text: &[u8]) -> &[u8] {
    let begin = text.iter().position(|&byte| byte != b' ');
    &text[begin.unwrap_or(text.len())..]
}

/// A line, given up to its line feed, without the carriage returns at its end.
fn without_return(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| byte != b'\r');
    &line[..end.map_or(0, |last| last + 1)]
}

/// The values of `name` in a list of `name=value`; a name without `=` has an empty value.
fn named<'a>(list: &'a [u8], separator: u8, name: &str) -> impl Iterator<Item = &'a [u8]> {
    list.split(move |&byte| byte == separator)
        .filter_map(move |pair| {
            let pair = pair.trim_ascii();
            let end = pair.iter().position(|&byte| byte == b'=');
            let (found, value) = match end {
                Some(end) => (&pair[..end], &pair[end + 1..]),
                None => (pair, &[][..]),
            };
            (found == name.as_bytes()).then_some(value)
        })
}
