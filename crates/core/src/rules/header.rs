//! The header of a request, line by line.

use super::bad_request::BadRequest;

/// The header lines that have come as a whole.
pub(super) struct Header {
    /// The lines' names and values.
    pub(super) lines: Vec<(String, Vec<u8>)>,
    /// Whether the empty line that ends the header has come.
    pub(super) is_whole: bool,
}

impl Header {
    /// A header without lines: of a request that has none (`is_whole`), or whose header is still to come.
    pub(super) const fn none(is_whole: bool) -> Self {
        Self {
            lines: Vec::new(),
            is_whole,
        }
    }

    /// Reads the lines that follow the request line.
    pub(super) fn read(mut rest: &[u8]) -> Result<Self, BadRequest> {
        let mut header = Self::none(false);
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line = &rest[..end];
            // nginx, Apache and Go take no more than one carriage return for the end of a head.
            if line.len() > 1 && line.iter().all(|&byte| byte == b'\r') {
                return Err(BadRequest::Line);
            }
            let text = line.iter().rposition(|&byte| byte != b'\r');
            let line = &line[..text.map_or(0, |last| last + 1)];
            rest = &rest[end + 1..];
            if line.is_empty() {
                header.is_whole = true;
                break;
            }
            header.lines.extend(read_line(line)?);
        }
        Ok(header)
    }

    /// The host that the `Host` line names; `None` if there is no such line.
    pub(super) fn host(&self) -> Result<Option<String>, BadRequest> {
        let is_host = |line: &&(String, Vec<u8>)| line.0.eq_ignore_ascii_case("host");
        let mut named = self.lines.iter().filter(is_host);
        let Some((_, value)) = named.next() else {
            return Ok(None);
        };
        match named.next() {
            None => host(value).map(Some),
            Some(_) => Err(BadRequest::Hosts),
        }
    }
}

/// Reads a line; `None` for one without a colon, which says nothing.
fn read_line(line: &[u8]) -> Result<Option<(String, Vec<u8>)>, BadRequest> {
    let colon = line.iter().position(|&byte| byte == b':');
    let name = &line[..colon.unwrap_or(line.len())];
    let is_no_name = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    // This also refuses a folded line, which continues the one before.
    if name.is_empty() || name.iter().any(is_no_name) {
        return Err(BadRequest::Line);
    }
    let Some(colon) = colon else {
        return Ok(None);
    };
    let value = line[colon + 1..].trim_ascii();
    if value.iter().any(|byte| matches!(byte, b'\r' | 0)) {
        return Err(BadRequest::Line);
    }
    let name = String::from_utf8_lossy(name).into_owned();
    Ok(Some((name, value.to_owned())))
}

/// Reads a host as it is written behind `Host:`, with or without a port. The result is in lower case, without
/// the port and without a dot at the end.
pub(super) fn host(text: &[u8]) -> Result<String, BadRequest> {
    let is_foreign = |byte: &u8| *byte <= b' ' || matches!(*byte, b'/' | 0x7f);
    let is_literal = text.starts_with(b"[");
    let end = match text.iter().position(|&byte| byte == b']') {
        Some(end) if is_literal => end + 1,
        _ if is_literal => text.len(),
        _ => (text.iter().position(|&byte| byte == b':')).unwrap_or(text.len()),
    };
    let name = &text[..end];
    let name = name.strip_suffix(b".").unwrap_or(name);
    let has_empty_label = name.ends_with(b".") || name.windows(2).any(|two| two == b"..");
    if name.is_empty() || has_empty_label || text.iter().any(is_foreign) {
        return Err(BadRequest::Host);
    }
    Ok(String::from_utf8_lossy(name).to_ascii_lowercase())
}
