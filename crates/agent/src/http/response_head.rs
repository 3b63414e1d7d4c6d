//! The head of a response, and where the body behind it ends. No I/O.

use super::body::Body;
use super::list::lists;

/// The longest head of a response, bytes.
const LONGEST: usize = 64 << 10;
/// At most this many fields are in the head of a response.
const FIELDS: usize = 512;

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    /// Length of the head, bytes.
    pub length: usize,
    /// The status code.
    pub status: u16,
    /// The body behind it.
    pub body: Body,
    /// Whether the connection goes on behind the response (RFC 9112, section 9.3).
    pub is_kept: bool,
}

/// A server has sent something that begins no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadResponse;

impl ResponseHead {
    /// Reads the head with which `bytes` begins. `None`: it is not whole yet. `to_head`: it answers HEAD, so it has no
    /// body (RFC 9112, section 6.3).
    ///
    /// # Errors
    /// No response begins like this, or its head is too long, or it gives two lengths.
    pub fn read(bytes: &[u8], to_head: bool) -> Result<Option<Self>, BadResponse> {
        let mut fields = vec![httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let length = match response.parse(bytes) {
            Ok(httparse::Status::Complete(length)) if length <= LONGEST => length,
            Ok(httparse::Status::Partial) if bytes.len() <= LONGEST => return Ok(None),
            _ => return Err(BadResponse),
        };
        let status = response.code.ok_or(BadResponse)?;
        let body = if to_head || matches!(status, 100..=199 | 204 | 304) {
            Body::Bytes(0)
        } else {
            body_of(response.headers)?
        };
        let is_kept = body != Body::UntilEnd && is_kept(response.version, response.headers);
        Ok(Some(Self {
            length,
            status,
            body,
            is_kept,
        }))
    }
}

/// Whether a server keeps its connection.
fn is_kept(version: Option<u8>, fields: &[httparse::Header<'_>]) -> bool {
    match version {
        Some(1) => !lists(values(fields, "connection"), "close"),
        _ => lists(values(fields, "connection"), "keep-alive"),
    }
}

/// The values of the fields with this name.
fn values<'a>(
    fields: &'a [httparse::Header<'_>],
    name: &'static str,
) -> impl DoubleEndedIterator<Item = &'a [u8]> {
    let named = move |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case(name);
    fields.iter().filter(named).map(|field| field.value)
}

/// The body behind these fields.
fn body_of(fields: &[httparse::Header<'_>]) -> Result<Body, BadResponse> {
    if let Some(coding) = values(fields, "transfer-encoding").next_back() {
        let last = coding.rsplit(|&byte| byte == b',').next();
        let is_chunked =
            last.is_some_and(|last| last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        return Ok(if is_chunked {
            Body::chunked()
        } else {
            Body::UntilEnd
        });
    }
    let mut lengths = values(fields, "content-length");
    let Some(length) = lengths.next() else {
        return Ok(Body::UntilEnd);
    };
    let digits = std::str::from_utf8(length.trim_ascii()).map_err(|_| BadResponse)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || lengths.any(|other| other != length) {
        return Err(BadResponse);
    }
    digits.parse().map(Body::Bytes).map_err(|_| BadResponse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_where_its_head_says() {
        for (fields, status, to_head, body) in [
            ("Content-Length: 5", 200, false, Body::Bytes(5)),
            ("Content-Length: 5", 200, true, Body::Bytes(0)),
            ("Content-Length: 5", 304, false, Body::Bytes(0)),
            (
                "Content-Length: 5\r\nContent-Length: 5",
                200,
                false,
                Body::Bytes(5),
            ),
            ("X: y", 204, false, Body::Bytes(0)),
            ("X: y", 101, false, Body::Bytes(0)),
            ("X: y", 200, false, Body::UntilEnd),
            ("Transfer-Encoding: chunked", 200, false, Body::chunked()),
            (
                "Transfer-Encoding: gzip, Chunked",
                404,
                false,
                Body::chunked(),
            ),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
                200,
                false,
                Body::UntilEnd,
            ),
            (
                "Transfer-Encoding: chunked\r\nContent-Length: 5",
                200,
                false,
                Body::chunked(),
            ),
        ] {
            let text = format!("HTTP/1.1 {status} A\r\n{fields}\r\n\r\n");
            let head = ResponseHead {
                length: text.len(),
                status,
                body,
                is_kept: body != Body::UntilEnd,
            };
            let more = format!("{text}more");
            assert_eq!(
                ResponseHead::read(more.as_bytes(), to_head),
                Ok(Some(head)),
                "{text}"
            );
            for cut in 0..text.len() {
                assert_eq!(
                    ResponseHead::read(&text.as_bytes()[..cut], to_head),
                    Ok(None)
                );
            }
        }
    }

    #[test]
    fn what_is_no_response_is_refused() {
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "a".repeat(LONGEST));
        for text in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            &endless,
        ] {
            assert_eq!(
                ResponseHead::read(text.as_bytes(), false),
                Err(BadResponse),
                "{text}"
            );
        }
    }
}
