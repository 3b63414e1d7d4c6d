//! Reads the head of a response, and decides whether the response is the one that a client has begun to get.
//!
//! A client that has a part of a response gets the following bytes from another server. For these to fit, the heads
//! must be of the same length, and the bodies the same. The operator vouches for the bodies (`resume`), as far as the
//! heads agree: status, length, ETag, Last-Modified and the length of the head itself are in its digest. Other fields
//! may differ, as Date does.

use std::num::{NonZeroU32, NonZeroU64};

use baton_abi::{
    HEAD_PART_ETAG, HEAD_PART_LENGTH, HEAD_PART_MODIFIED, HEAD_PART_SIZE, HEAD_PART_STATUS,
};
use baton_wire::HeadDigest;

/// The longest head that is read, bytes.
pub(super) const LONGEST: usize = 64 * 1024;

const FIELDS: usize = 96;

/// Content-Type of content that each server divides in its own way: the parts of a 206 with several ranges (RFC 9110,
/// 14.6).
const MULTIPART: &[u8] = b"multipart/";

/// The contents of a response's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Digest that tells this head from others.
    pub digest: HeadDigest,
    /// Length of head and body, bytes.
    pub length: u64,
    parts: Parts,
}

/// The reason why a response cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// Its status or its type is not one whose content is known to be the same.
    Status,
    /// It does not say how long it is.
    NoLength,
    /// It is shorter than what the client has, or has 4 GiB or more.
    Length,
    /// It is known to be another response.
    Differs,
}

impl Head {
    /// Reads the head of the answer to `request` that begins with `bytes`. `None`: the head is not whole yet.
    ///
    /// # Errors
    /// [`Unfit`], if the response cannot be resumed.
    pub fn read(request: &[u8], bytes: &[u8]) -> Result<Option<Self>, Unfit> {
        let Some(parts) = Parts::read(bytes).map_err(|NoHead| Unfit::Status)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            digest: parts.digest(0),
            length: parts.whole(request)?,
            parts,
        }))
    }

    /// Whether a client can get the rest of this response, if it has `had` bytes of a response of which `digest` and
    /// `length` are known.
    ///
    /// # Errors
    /// [`Unfit`], if it cannot.
    pub fn continues(
        &self,
        had: u32,
        digest: Option<HeadDigest>,
        length: Option<u64>,
    ) -> Result<(), Unfit> {
        if digest.is_some_and(|digest| digest != self.parts.digest(digest.unseen()))
            || length.is_some_and(|length| length != self.length)
        {
            return Err(Unfit::Differs);
        }
        if u64::from(had) > self.length {
            return Err(Unfit::Length);
        }
        Ok(())
    }
}

/// What can be seen of a response that leaves this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// Digest that tells the response's head from others.
    pub digest: HeadDigest,
    /// Length of head and body, bytes, provided that the response has a body. The answer to HEAD has none.
    pub length: Option<NonZeroU32>,
}

/// Returns what can be seen of the head in `bytes`, with which a response begins. `None`: no response begins like this.
pub fn glimpse(bytes: &[u8]) -> Option<Glimpse> {
    if let Some(parts) = Parts::read(bytes).ok()? {
        return Some(Glimpse {
            digest: parts.digest(0),
            length: parts.whole(b"GET ").ok().and_then(|length| {
                let length = u32::try_from(length).ok()?;
                NonZeroU32::new(length)
            }),
        });
    }
    // The lines that have come are read as if they were all.
    let end = bytes.windows(2).rposition(|two| two == b"\r\n")? + 2;
    let mut parts = Parts::read(&[&bytes[..end], b"\r\n"].concat()).ok()??;
    parts.size = None;
    let unseen = parts.absent();
    Some(Glimpse {
        digest: parts.digest(unseen),
        length: None,
    })
}

struct NoHead;

/// The parts of a head that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    status: u16,
    /// Length of the head, bytes. `None`: not all of the head is known.
    size: Option<u64>,
    length: Option<Vec<u8>>,
    etag: Option<Vec<u8>>,
    modified: Option<Vec<u8>>,
    /// Whether the body comes in chunks, or is encoded otherwise.
    is_coded: bool,
    /// Whether the body consists of several ranges, with a boundary between them that each server makes up.
    is_in_parts: bool,
}

impl Parts {
    /// Reads the parts of the head with which `bytes` begins. `None`: the head is not whole yet.
    fn read(bytes: &[u8]) -> Result<Option<Self>, NoHead> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let size = match response.parse(bytes) {
            Ok(httparse::Status::Complete(size)) => size as u64,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(NoHead),
        };
        let field = |name: &str| {
            let mut fields = response.headers.iter();
            let found = fields.find(|field| field.name.eq_ignore_ascii_case(name));
            found.map(|field| field.value.to_vec())
        };
        Ok(Some(Self {
            status: response.code.unwrap_or(0),
            size: Some(size),
            length: field("content-length"),
            etag: field("etag"),
            modified: field("last-modified"),
            is_coded: field("transfer-encoding").is_some(),
            is_in_parts: field("content-type").is_some_and(|kind| {
                let start = kind.get(..MULTIPART.len()).unwrap_or_default();
                start.eq_ignore_ascii_case(MULTIPART)
            }),
        }))
    }

    /// Length of head and body of the answer to `request`, bytes.
    fn whole(&self, request: &[u8]) -> Result<u64, Unfit> {
        if !matches!(self.status, 200 | 206 | 304) || self.is_in_parts {
            return Err(Unfit::Status);
        }
        // Each server decides anew where the pieces of a chunked body end.
        if self.is_coded {
            return Err(Unfit::NoLength);
        }
        let body = if self.status == 304 || request.starts_with(b"HEAD ") {
            0
        } else {
            (self.length.as_deref())
                .and_then(read_length)
                .ok_or(Unfit::NoLength)?
        };
        (self.size)
            .and_then(|head| head.checked_add(body))
            .filter(|length| *length <= u64::from(u32::MAX))
            .ok_or(Unfit::Length)
    }

    /// Returns the bits of `enum head_part` for the parts that are not here.
    fn absent(&self) -> u16 {
        let parts = [
            (self.size.is_none(), HEAD_PART_SIZE),
            (self.length.is_none(), HEAD_PART_LENGTH),
            (self.etag.is_none(), HEAD_PART_ETAG),
            (self.modified.is_none(), HEAD_PART_MODIFIED),
        ];
        let absent = parts.iter().filter(|(absent, _)| *absent);
        absent.map(|(_, part)| *part as u16).sum() // bits that C keeps in 16
    }

    /// Returns a digest of all parts but those in `unseen`. A field that is not in the head counts as an empty one.
    fn digest(&self, unseen: u16) -> HeadDigest {
        let mut digest = Digest::default();
        let mut add = |part: u32, value: &[u8]| {
            if u32::from(unseen) & part == 0 {
                digest.add(value);
            }
        };
        add(HEAD_PART_STATUS, &self.status.to_be_bytes());
        add(HEAD_PART_SIZE, &self.size.unwrap_or(0).to_be_bytes());
        for (part, value) in [
            (HEAD_PART_LENGTH, &self.length),
            (HEAD_PART_ETAG, &self.etag),
            (HEAD_PART_MODIFIED, &self.modified),
        ] {
            add(part, value.as_deref().unwrap_or_default());
        }
        HeadDigest::new(NonZeroU64::new(digest.0).unwrap_or(NonZeroU64::MIN), unseen)
    }
}

/// Reads a length that consists of digits alone (RFC 9110, section 8.6), without the sign that a number of Rust may
/// have.
fn read_length(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok()?.trim();
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| are_digits)
}

/// A hash by FNV-1a. No release will change it, because nodes of two releases must agree. Each value ends with a byte
/// that no field has, so that two values cannot be taken for two others.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn add(&mut self, value: &[u8]) {
        const PRIME: u64 = 0x0100_0000_01b3;
        for byte in value.iter().chain(b"\n") {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

    fn head(text: &str) -> Result<Option<Head>, Unfit> {
        Head::read(GET, text.as_bytes())
    }

    fn whole(fields: &str) -> Head {
        let head = head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
        head.expect("fits").expect("is whole")
    }

    #[test]
    fn only_the_date_may_differ() {
        let date = |seconds| {
            whole(&format!(
                "Date: Tue, 21 Nov 2026 10:00:{seconds} GMT\r\nContent-Length: 5\r\nETag: \"a\"\r\n"
            ))
        };
        assert_eq!(date("01"), date("59"));
        let one = whole("Content-Length: 5\r\nETag: \"a\"\r\n");
        for other in [
            "Content-Length: 6\r\nETag: \"a\"\r\n",
            "Content-Length: 5\r\nETag: \"b\"\r\n",
            "Content-Length: 5\r\nETag: \"a\"\r\nX: y\r\n",
            "Content-Length: 5\r\nLast-Modified: \"a\"\r\n",
        ] {
            assert_ne!(one.digest, whole(other).digest, "{other}");
        }
        assert_eq!(one.continues(3, Some(one.digest), Some(one.length)), Ok(()));
        let other = whole("Content-Length: 5\r\nETag: \"b\"\r\n").digest;
        assert_eq!(one.continues(3, Some(other), None), Err(Unfit::Differs));
        assert_eq!(
            one.continues(3, None, Some(one.length + 1)),
            Err(Unfit::Differs)
        );
    }

    #[test]
    fn of_a_head_that_was_seen_in_part_what_was_seen_must_agree() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a\"\r\nX: y\r\n\r\n";
        let glimpse = |text: &str| glimpse(text.as_bytes()).expect("is a head");
        let all = head(text).unwrap().unwrap();
        assert_eq!(glimpse(text).digest, all.digest);
        assert_eq!(
            glimpse(text).length.map(NonZeroU32::get),
            Some(all.length as u32)
        );
        // The part that is seen ends behind the status, the length or the tag.
        for (seen, with_length, with_tag) in
            [(20, false, false), (37, true, false), (50, true, true)]
        {
            let seen = glimpse(&text[..seen]);
            assert_eq!(seen.length, None);
            let seen = Some(seen.digest);
            let agrees = |fields: &str| whole(fields).continues(1, seen, None).is_ok();
            assert!(agrees("Content-Length: 5\r\nETag: \"a\"\r\nX: another\r\n"));
            assert_eq!(agrees("Content-Length: 6\r\nETag: \"a\"\r\n"), !with_length);
            assert_eq!(agrees("Content-Length: 5\r\nETag: \"b\"\r\n"), !with_tag);
            assert_eq!(agrees("Content-Length: 5\r\n"), !with_tag);
        }
        for nothing in [
            "",
            "HTTP/1.1 200",
            "nonsense\r\n",
            "HTTP/1.1 nonsense\r\n\r\n",
        ] {
            assert_eq!(super::glimpse(nothing.as_bytes()), None, "{nothing}");
        }
    }

    #[test]
    fn what_is_had_is_no_more_than_all() {
        let head = whole("Content-Length: 100\r\n");
        let all = u32::try_from(head.length).expect("short");
        assert_eq!(head.continues(all, None, None), Ok(()));
        assert_eq!(head.continues(all + 1, None, None), Err(Unfit::Length));
    }

    #[test]
    fn what_cannot_be_known_is_refused() {
        assert_eq!(head("HTTP/1.1 200 OK\r\nContent-Le"), Ok(None));
        let no_length = Err(Unfit::NoLength);
        assert_eq!(head("HTTP/1.1 200 OK\r\n\r\n"), no_length);
        for signed in ["+5", "-5", "5,5", "0x5", ""] {
            let head = head(&format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {signed}\r\n\r\n"
            ));
            assert_eq!(head, no_length, "{signed}");
        }
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            no_length
        );
        assert_eq!(
            head("HTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\n"),
            Err(Unfit::Status)
        );
        assert_eq!(head("nonsense\r\n\r\n"), Err(Unfit::Status));
        let ranges = "Content-Length: 9\r\ncontent-type: Multipart/byteranges; boundary=7\r\n";
        assert_eq!(
            head(&format!("HTTP/1.1 206 Partial\r\n{ranges}\r\n")),
            Err(Unfit::Status)
        );
        assert_eq!(
            head("HTTP/1.1 200 OK\r\nContent-Length: 4294967296\r\n\r\n"),
            Err(Unfit::Length)
        );
    }

    #[test]
    fn the_answer_to_head_has_no_body() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let head = Head::read(b"HEAD / HTTP/1.1\r\n\r\n", text);
        assert_eq!(
            head.map(|head| head.map(|head| head.length)),
            Ok(Some(text.len() as u64))
        );
    }
}
