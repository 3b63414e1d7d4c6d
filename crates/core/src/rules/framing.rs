//! Where a request ends once its head has come (RFC 9112, 6.3).

/// How far the body of a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The body has this many bytes.
    Bytes(u64),
    /// The body goes to its last chunk.
    Chunked,
    /// The end of the body is not known: another protocol may follow, or servers may disagree.
    Unknown,
}

impl Body {
    /// The body behind a header with these lines. It is unknown if the header asks for another protocol, because
    /// that may follow.
    pub(super) fn of(lines: &[(String, Vec<u8>)]) -> Self {
        if asks_to_switch(lines) {
            return Self::Unknown;
        }
        Self::of_request(lines)
    }

    /// The body of the request itself, even if the header asks for another protocol, which may follow it.
    pub(super) fn of_request(lines: &[(String, Vec<u8>)]) -> Self {
        let mut codings = values(lines, "transfer-encoding");
        let mut lengths = values(lines, "content-length");
        match (codings.next(), lengths.next()) {
            (None, None) => Self::Bytes(0),
            (Some(coding), None) if codings.next().is_none() => {
                if coding.eq_ignore_ascii_case(b"chunked") {
                    Self::Chunked
                } else {
                    Self::Unknown
                }
            }
            (None, Some(length)) if lengths.next().is_none() => {
                let digits = !length.is_empty() && length.iter().all(u8::is_ascii_digit);
                let text = std::str::from_utf8(length).ok().filter(|_| digits);
                (text.and_then(|text| text.parse().ok())).map_or(Self::Unknown, Self::Bytes)
            }
            _ => Self::Unknown,
        }
    }
}

/// Whether these lines ask for another protocol (RFC 9110, 7.8).
pub(super) fn asks_to_switch(lines: &[(String, Vec<u8>)]) -> bool {
    values(lines, "upgrade").next().is_some()
}

fn values<'a>(
    lines: &'a [(String, Vec<u8>)],
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    let named = move |line: &&(String, Vec<u8>)| line.0.eq_ignore_ascii_case(name);
    lines.iter().filter(named).map(|(_, value)| &**value)
}

/// The length of the head that the text begins with, including its empty line; `None` if that has not come.
pub fn head_length(text: &[u8]) -> Option<usize> {
    let mut at = text
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    while let Some(end) = text[at..].iter().position(|&byte| byte == b'\n') {
        let line = &text[at..at + end];
        at += end + 1;
        if line.iter().all(|&byte| byte == b'\r') {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_header() {
        for (text, body) in [
            ("", Body::Bytes(0)),
            ("Content-Length: 5", Body::Bytes(5)),
            ("content-length: 0005", Body::Bytes(5)),
            ("Content-Length: +5", Body::Unknown),
            ("Content-Length: ", Body::Unknown),
            ("Content-Length: 5, 5", Body::Unknown),
            ("Content-Length: 99999999999999999999", Body::Unknown),
            ("Content-Length: 5\nContent-Length: 5", Body::Unknown),
            ("Transfer-Encoding: Chunked", Body::Chunked),
            ("Transfer-Encoding: gzip, chunked", Body::Unknown),
            (
                "Transfer-Encoding: chunked\nTransfer-Encoding: chunked",
                Body::Unknown,
            ),
            (
                "Transfer-Encoding: chunked\nContent-Length: 5",
                Body::Unknown,
            ),
            ("Upgrade: websocket", Body::Unknown),
        ] {
            let lines: Vec<_> = (text.lines())
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.as_bytes().to_owned()))
                .collect();
            assert_eq!(Body::of(&lines), body, "{text}");
        }
    }
}
