//! The target of a request: a path, perhaps with scheme and authority in front (RFC 9112, 3.2).

use baton_wire::Path;

use super::{bad_request::BadRequest, header::host};

/// A target in its parts.
pub(super) struct Target<'a> {
    /// The host that an absolute form names.
    pub(super) host: Option<String>,
    /// The path. It is empty if the target means the server and no resource of it: `*`, and the target of
    /// CONNECT.
    pub(super) path: Path,
    /// Whether the path ends here.
    pub(super) has_path: bool,
    query: Option<&'a [u8]>,
}

impl<'a> Target<'a> {
    /// Reads what the request line has between its blanks. If it is not whole, more of it is to come.
    pub(super) fn read(
        method: &[u8],
        target: &'a [u8],
        is_whole: bool,
    ) -> Result<Self, BadRequest> {
        if target.iter().any(u8::is_ascii_control) {
            return Err(BadRequest::Target);
        }
        let none = |has_path| Self {
            host: None,
            path: Path::default(),
            has_path,
            query: None,
        };
        if target.starts_with(b"/") {
            return Self::of_rest(None, target, is_whole);
        }
        if target == b"*" || method == b"CONNECT" {
            return Ok(none(is_whole));
        }
        let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let scheme_ends = target.iter().position(|byte| !is_scheme(byte));
        let (scheme, rest) = target.split_at(scheme_ends.unwrap_or(target.len()));
        if !scheme.first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(BadRequest::Target);
        }
        let Some(rest) = rest.strip_prefix(b"://") else {
            let may_become = !is_whole && b"://".starts_with(rest);
            return may_become.then(|| none(false)).ok_or(BadRequest::Target);
        };
        let authority_ends = rest.iter().position(|byte| b"/?".contains(byte));
        if authority_ends.is_none() && !is_whole {
            return Ok(none(false));
        }
        let (authority, rest) = rest.split_at(authority_ends.unwrap_or(rest.len()));
        Self::of_rest(Some(name(authority)?), rest, is_whole)
    }

    /// The target as routes compare it: path, question mark and query.
    pub(super) fn spelled(&self) -> Vec<u8> {
        let mut spelled = self.path.as_bytes().to_vec();
        if let Some(query) = self.query {
            spelled.push(b'?');
            spelled.extend(query);
        }
        spelled
    }

    /// Makes a target of path and query. A fragment, which clients should not send, is cut off.
    fn of_rest(host: Option<String>, rest: &'a [u8], is_whole: bool) -> Result<Self, BadRequest> {
        let fragment = rest.iter().position(|&byte| byte == b'#');
        let text = &rest[..fragment.unwrap_or(rest.len())];
        let query = text.iter().position(|&byte| byte == b'?');
        let path = &text[..query.unwrap_or(text.len())];
        let has_path = is_whole || fragment.is_some() || query.is_some();
        let path = match (path, has_path) {
            (b"", _) => Path::read(b"/")?,
            (path, true) => Path::read(path)?,
            (path, false) => Path::read_prefix(without_half_escape(path))?,
        };
        Ok(Self {
            host,
            path,
            has_path,
            query: query.map(|at| &text[at + 1..]),
        })
    }
}

/// The host of an authority: a name or an IP literal, perhaps with a port. A user in front of it is refused, as
/// servers do.
fn name(authority: &[u8]) -> Result<String, BadRequest> {
    let literal_ends = authority.iter().rposition(|&byte| byte == b']');
    let port = match literal_ends {
        Some(end) if authority.starts_with(b"[") => end + 1,
        Some(_) => return Err(BadRequest::Host),
        None => {
            let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
            let end = authority.iter().position(|byte| !is_of_name(byte));
            end.unwrap_or(authority.len())
        }
    };
    let digits = match &authority[port..] {
        [] => &[][..],
        [b':', digits @ ..] => digits,
        _ => return Err(BadRequest::Host),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadRequest::Host);
    }
    host(&authority[..port])
}

/// Cuts off an escape that has come only in part, of a path whose rest is still to come.
fn without_half_escape(path: &[u8]) -> &[u8] {
    let tail = &path[path.len().saturating_sub(2)..];
    let begin = tail.iter().position(|&byte| byte == b'%');
    &path[..path.len() - begin.map_or(0, |at| tail.len() - at)]
}
