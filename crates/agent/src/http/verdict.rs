//! Decides what is to become of a request, by the bytes of it that have come so far. No I/O.

use baton_abi::READ_BYTES_MOST;
use baton_core::rules::{Body, ClientHello, Request, head_length};

use super::answer::Answer;
use super::asked::Asked;
use super::body::Body as Chunked;

/// The longest head, bytes. The program does not let more through.
pub(crate) const LONGEST: usize = READ_BYTES_MOST as usize;

/// A body of this many bytes or more is large: sequence numbers of 32 bits do not say well where it ends.
const LARGE_BODY: u64 = 1 << 30;

/// More bytes than any connection has.
const ENDLESS: u64 = 1 << 62;

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The body has this many bytes.
    Bytes(u32),
    /// The body has this many bytes, too many for sequence numbers. Whoever follows the body counts them.
    Large(u64),
    /// The body ends with its last chunk.
    Chunked,
}

/// What is to be done with a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The head is not whole yet.
    Wait,
    /// The request goes to the data server that answers for it.
    Give {
        /// All that the head says.
        asked: Asked,
        /// Length of the head, bytes.
        head: u32,
        /// Where the body ends that follows the head.
        body: Extent,
    },
    /// The agent itself gives this answer.
    Answer(Answer),
}

/// Decides about the request that begins with `text`.
pub(crate) fn judge(text: &[u8]) -> Verdict {
    let Some(length) = head_length(text) else {
        return if text.len() >= LONGEST {
            Verdict::Answer(Answer::TooLarge)
        } else {
            Verdict::Wait
        };
    };
    let request = match Request::read(&text[..length]) {
        Ok(Some(request)) => request,
        Ok(None) | Err(_) => return Verdict::Answer(Answer::Bad),
    };
    let (Ok(head), body) = (u32::try_from(length), request.body_before_switch()) else {
        return Verdict::Answer(Answer::TooLarge);
    };
    let body = match body {
        Body::Bytes(bytes) if bytes >= LARGE_BODY => Extent::Large(bytes),
        Body::Bytes(bytes) => Extent::Bytes(bytes as u32), // less than 2^30
        Body::Chunked => Extent::Chunked,
        Body::Unknown => return Verdict::Answer(Answer::Bad),
    };
    Verdict::Give {
        asked: Asked::Http(Box::new(request)),
        head,
        body,
    }
}

/// Decides about the TLS connection that begins with `text`. All of `text` counts as its head, and whatever follows as
/// a body without an end.
pub(crate) fn judge_tls(text: &[u8]) -> Verdict {
    match ClientHello::read(text) {
        Some(hello) => Verdict::Give {
            asked: Asked::Tls(hello),
            head: text.len() as u32, // the program lets no more than LONGEST through
            body: Extent::Large(ENDLESS),
        },
        None if text.len() >= LONGEST => Verdict::Answer(Answer::TooLarge),
        None => Verdict::Wait,
    }
}

/// Hides from the server that this head asks for HTTP/2 (RFC 7540, 3.2), so that no client leaves HTTP/1 for a protocol
/// whose requests nobody here reads. The length of the head stays the same.
pub(crate) fn hide_http2(head: &mut [u8]) {
    const NAME: &[u8] = b"upgrade:";
    const HTTP2: &[u8] = b"h2c";
    for line in head.split_mut(|&byte| byte == b'\n') {
        let Some((name, value)) = line.split_at_mut_checked(NAME.len()) else {
            continue;
        };
        if !name.eq_ignore_ascii_case(NAME) {
            continue;
        }
        for token in value.split_mut(|byte| !byte.is_ascii_alphanumeric()) {
            if token.eq_ignore_ascii_case(HTTP2) {
                token.fill(b'-');
            }
        }
    }
}

/// Splits the text into its requests and what is behind the last whole one. The program judges each request by the
/// frame that it begins. In the same way it judges a body that it has to follow, so such a body begins a part of its
/// own. No part reaches into the next request: a connection may go on with that one, and without what is before it.
pub(crate) fn requests(mut text: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let (length, followed) = match judge(text) {
            Verdict::Give {
                head,
                body: Extent::Bytes(body),
                ..
            } => (head as usize + body as usize, None),
            Verdict::Give { head, body, .. } => (head as usize, Some(body)),
            Verdict::Wait | Verdict::Answer(_) => (text.len(), None),
        };
        let (request, rest) = text.split_at(length.min(text.len()));
        let length = match followed {
            None => 0,
            Some(Extent::Chunked) => chunks_length(rest).unwrap_or(rest.len()),
            // The text is shorter than any large body.
            Some(_) => rest.len(),
        };
        let (body, rest) = rest.split_at(length);
        parts.extend([request, body].into_iter().filter(|part| !part.is_empty()));
        text = rest;
    }
    parts
}

/// The length of the chunked body that begins here (RFC 9112, 7.1). `None`: it does not end here, or it is no such body.
fn chunks_length(text: &[u8]) -> Option<usize> {
    let mut chunks = Chunked::chunked();
    let length = chunks.follow(text).ok()?;
    chunks.is_whole().then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn answered(text: &str, answer: Answer) {
        assert_eq!(judge(text.as_bytes()), Verdict::Answer(answer), "{text:?}");
    }

    #[test]
    fn a_whole_head_says_where_its_request_ends() {
        let text = b"POST /a%20b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel";
        let Verdict::Give {
            asked: Asked::Http(request),
            head,
            body,
        } = judge(text)
        else {
            panic!("{:?}", judge(text));
        };
        assert_eq!((head, body), (text.len() as u32 - 3, Extent::Bytes(5)));
        assert_eq!(request.method(), b"POST");
        for cut in 0..head as usize {
            assert_eq!(judge(&text[..cut]), Verdict::Wait, "{cut}");
        }
    }

    #[test]
    fn no_more_than_one_return_ends_a_head() {
        answered("GET /a HTTP/1.1\r\nHost: a\r\n\r\r\n", Answer::Bad);
        for end in ["\r\n", "\n"] {
            let text = format!("GET /a HTTP/1.1\r\nHost: a\r\n{end}");
            assert!(matches!(judge(text.as_bytes()), Verdict::Give { .. }));
        }
    }

    #[test]
    fn a_body_may_say_where_it_ends_as_it_goes_on() {
        for (line, extent) in [
            ("Transfer-Encoding: chunked", Extent::Chunked),
            ("Content-Length: 1073741823", Extent::Bytes(1073741823)),
            ("Content-Length: 1073741824", Extent::Large(1073741824)),
        ] {
            let text = format!("PUT / HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n");
            match judge(text.as_bytes()) {
                Verdict::Give { body, .. } => assert_eq!(body, extent),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn nobody_asks_for_http2() {
        for (asked, seen) in [
            ("h2c", "---"),
            ("websocket, H2C", "websocket, ---"),
            ("h2c-14", "----14"),
            ("websocket", "websocket"),
            ("eh2c", "eh2c"),
        ] {
            let head = |value| format!("GET /h2c HTTP/1.1\r\nX: h2c\r\nupGrade: {value}\r\n\r\n");
            let mut bytes = head(asked).into_bytes();
            hide_http2(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), head(seen));
        }
        assert!(matches!(
            judge(b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"),
            Verdict::Give {
                body: Extent::Bytes(0),
                ..
            }
        ));
    }

    #[test]
    fn a_text_is_divided_where_requests_begin() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        let large = "PUT / HTTP/1.1\r\nContent-Length: 1073741824\r\n\r\n";
        let bad = "GET / HTTP/1.1\r\n folded\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        for parts in [
            vec![],
            vec![get],
            vec![get, post, get],
            vec![post, &get[..9]],
            vec![get, &post[..post.len() - 2]],
            vec![get, bad],
            vec![chunked, "5\r\nhello\r\n0\r\n\r\n", get, post],
            vec![
                chunked,
                "0\r\n\r\n",
                chunked,
                "1;a=b\r\n0\r\n0\r\nX: y\r\n\r\n",
                get,
            ],
            vec![chunked, "5\r\nhello\r\n0\r\nX: y\r\n"],
            vec![chunked, "5\r\nhel"],
            vec![chunked, "ffffffffffffffff\r\nhello\r\n0\r\n\r\n"],
            vec![chunked, "5\r\nhello0\r\n\r\nGET / HTTP/1.1\r\n\r\n"],
            vec![large, get],
        ] {
            let text = parts.concat();
            let parts: Vec<_> = parts.iter().map(|part| part.as_bytes()).collect();
            assert_eq!(requests(text.as_bytes()), parts);
        }
    }

    #[test]
    fn what_no_server_could_answer_is_answered_here() {
        answered("nonsense\r\n\r\n", Answer::Bad);
        answered("GET / HTTP/1.1\r\n folded: line\r\n\r\n", Answer::Bad);
        answered(
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            Answer::Bad,
        );
        let endless = format!("GET / HTTP/1.1\r\nCookie: {}", "a".repeat(LONGEST));
        answered(&endless[..LONGEST], Answer::TooLarge);
        assert_eq!(judge(&endless.as_bytes()[..LONGEST - 1]), Verdict::Wait);
    }
}
