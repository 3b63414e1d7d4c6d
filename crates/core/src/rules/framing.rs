//! Where a request ends whose head is here (RFC 9112, 6.3).

/// How far the body goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many bytes.
    Bytes(u64),
    /// To its last chunk.
    Chunked,
    /// Nobody can say: another protocol may follow, or servers may disagree.
    Unknown,
}

impl Body {
    /// Of a header with these lines.
    pub(super) fn of(lines: &[(String, Vec<u8>)]) -> Self {
        let values = |name: &'static str| {
            let named = move |line: &&(String, Vec<u8>)| line.0.eq_ignore_ascii_case(name);
            lines.iter().filter(named).map(|(_, value)| &**value)
        };
        if values("upgrade").next().is_some() {
            return Self::Unknown;
        }
        let mut codings = values("transfer-encoding");
        let mut lengths = values("content-length");
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
