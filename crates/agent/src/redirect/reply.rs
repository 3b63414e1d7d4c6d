//! The redirect that answers a request: to the same host, path and query, by HTTPS. No I/O.
//!
//! GET and HEAD are answered with 301, which every client knows. Other methods are answered with 308, because after a
//! 301 many clients would send a GET instead, without the body (RFC 9110, section 15.4.2).

use std::fmt::Write as _;

use baton_core::rules::Request;

use crate::http::answer::Answer;
use crate::http::asked::Asked;
use crate::http::list::lists;
use crate::http::verdict::{Extent, Verdict, judge};

/// The port that no `https` link needs to name.
const HTTPS: u16 = 443;
/// The longest name in the DNS, and more than any address.
const LONGEST_HOST: usize = 255;

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// How many bytes the request has.
    pub taken: usize,
    /// The response.
    pub text: String,
    /// Whether it is a redirect, and not an error.
    pub is_redirect: bool,
    /// Whether the connection ends with it.
    pub is_last: bool,
}

/// Answers the request that `text` begins with, for a client whose HTTPS is at this port. `None`: its head is not whole
/// yet.
pub(super) fn reply(text: &[u8], https_port: u16) -> Option<Reply> {
    let answered = match judge(text) {
        Verdict::Wait => return None,
        Verdict::Give {
            asked: Asked::Http(request),
            head,
            body,
        } => redirect(&request, &text[..head as usize], body, https_port).ok_or(Answer::Bad),
        Verdict::Give { .. } => Err(Answer::Bad),
        Verdict::Answer(answer) => Err(answer),
    };
    Some(answered.unwrap_or_else(|answer| Reply {
        taken: text.len(),
        text: answer.response(),
        is_redirect: false,
        is_last: true,
    }))
}

/// The redirect for a request with this head. `None`: the request does not say where to.
fn redirect(request: &Request, head: &[u8], body: Extent, https_port: u16) -> Option<Reply> {
    let (target, version) = line(head)?;
    let path = path(target)?;
    // A request with several such fields was refused before.
    request.headers("host").next()?;
    let host = Some(request.host()).filter(|host| is_host(host))?;
    let says_close = lists(request.headers("connection"), "close");
    // Nobody here wants a body, so nobody looks where it ends.
    let is_last = says_close || version != b"HTTP/1.1" || body != Extent::Bytes(0);
    let status = match request.method() {
        b"GET" | b"HEAD" => "301 Moved Permanently",
        _ => "308 Permanent Redirect",
    };
    let mut text = format!("HTTP/1.1 {status}\r\nLocation: https://{host}");
    if https_port != HTTPS {
        // Writing to a text does not fail, here and below.
        let _ = write!(text, ":{https_port}");
    }
    for &byte in path {
        match byte {
            // What no URL may contain goes into it as an escape (RFC 3986, section 2.1).
            b'!'..=b'~' => text.push(byte.into()),
            other => drop(write!(text, "%{other:02X}")),
        }
    }
    text.push_str("\r\nContent-Length: 0\r\n");
    text.push_str(if is_last {
        "Connection: close\r\n\r\n"
    } else {
        "\r\n"
    });
    Some(Reply {
        taken: head.len(),
        text,
        is_redirect: true,
        is_last,
    })
}

/// The target and the version in the first line of a head, as they were sent.
fn line(head: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let mut lines = head.split(is_end).filter(|line| !line.is_empty());
    let mut words = (lines.next()?.split(|&byte| byte == b' ')).filter(|word| !word.is_empty());
    let _method = words.next()?;
    Some((words.next()?, words.next()?))
}

/// Path and query of a target, without the fragment that no client should send. `None`: it has no path, as `*`.
fn path(target: &[u8]) -> Option<&[u8]> {
    let target = target.split(|&byte| byte == b'#').next()?;
    if target.starts_with(b"/") {
        return Some(target);
    }
    let authority = target.windows(3).position(|three| three == b"://")? + 3;
    let length = (target[authority..].iter()).position(|byte| b"/?".contains(byte));
    match length.map(|length| &target[authority + length..]) {
        Some(path) if path.starts_with(b"/") => Some(path),
        // No path is "/", and no client writes a query without one.
        _ => Some(b"/"),
    }
}

/// Whether this is a name, or an address: nothing else of what a client says may become a part of a link.
fn is_host(host: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_of_address = |byte: u8| byte.is_ascii_hexdigit() || b":.".contains(&byte);
    let literal = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_legal = match literal {
        Some(address) => !address.is_empty() && address.bytes().all(is_of_address),
        None => !host.is_empty() && host.bytes().all(is_of_name),
    };
    is_legal && host.len() <= LONGEST_HOST
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(target: &str, fields: &str) -> String {
        format!("GET {target} HTTP/1.1\r\n{fields}\r\n")
    }

    /// Where a client with this request is sent.
    #[track_caller]
    fn location(request: &str, https_port: u16) -> String {
        let reply = reply(request.as_bytes(), https_port).unwrap();
        assert!(reply.is_redirect, "{request:?}: {}", reply.text);
        let (_, rest) = reply.text.split_once("Location: ").unwrap();
        rest.split_once("\r\n").unwrap().0.to_owned()
    }

    #[test]
    fn a_client_is_sent_to_the_same_place() {
        for (target, host, to) in [
            ("/", "a.example", "https://a.example/"),
            ("/", "A.Example.:80", "https://a.example/"),
            ("/b/../%2e?c=d&e", "a", "https://a/b/../%2e?c=d&e"),
            ("//b.example/", "a", "https://a//b.example/"),
            ("/b#c", "a", "https://a/b"),
            ("/\u{e9}\"", "a_b", "https://a_b/%C3%A9\""),
            ("http://b.example:80/c?d", "a", "https://b.example/c?d"),
            ("http://b.example", "a", "https://b.example/"),
            ("http://b.example?c", "a", "https://b.example/"),
            ("/", "192.0.2.1:8080", "https://192.0.2.1/"),
            ("/", "[2001:db8::1]:80", "https://[2001:db8::1]/"),
        ] {
            let request = get(target, &format!("Host: {host}\r\n"));
            assert_eq!(location(&request, 443), to, "{request}");
        }
        assert_eq!(
            location(&get("/b", "Host: a:80\r\n"), 8443),
            "https://a:8443/b"
        );
    }

    #[test]
    fn a_method_decides_how() {
        for (method, status) in [("GET", 301), ("HEAD", 301), ("POST", 308), ("OPTIONS", 308)] {
            let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
            let reply = reply(text.as_bytes(), 443).unwrap();
            assert!(
                reply.text.starts_with(&format!("HTTP/1.1 {status} ")),
                "{reply:?}"
            );
            assert!(
                reply.text.ends_with("Content-Length: 0\r\n\r\n"),
                "{reply:?}"
            );
            assert!(!reply.is_last);
        }
    }

    #[test]
    fn without_a_good_host_there_is_no_redirect() {
        for fields in [
            "",
            "Host:\r\n",
            "Host: a\r\nHost: a\r\n",
            "Host: a b\r\n",
            "Host: a\"b\r\n",
            "Host: a@b\r\n",
            "Host: a?b\r\n",
            "Host: a\\b\r\n",
            "Host: a%0d%0ab\r\n",
            "Host: a\rX: y\r\n",
            "Host: \u{e9}.example\r\n",
            "Host: [::1\r\n",
            "Host: [::1\"]\r\n",
            "Host: []\r\n",
            &format!("Host: {}\r\n", "a".repeat(256)),
        ] {
            let reply = reply(get("/", fields).as_bytes(), 443).unwrap();
            assert!(
                reply.text.starts_with("HTTP/1.1 400 "),
                "{fields:?}: {}",
                reply.text
            );
            assert!(reply.is_last && !reply.is_redirect);
        }
        for text in [
            "GET /\r\n\r\n",
            "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\n\r\n",
            "GET http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
            "nonsense\r\n\r\n",
        ] {
            let reply = reply(text.as_bytes(), 443).unwrap();
            assert!(
                reply.text.starts_with("HTTP/1.1 400 "),
                "{text:?}: {}",
                reply.text
            );
        }
    }

    #[test]
    fn a_connection_goes_on_if_it_can() {
        for (text, is_last) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false),
            (
                "\r\nGET  /  HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
                false,
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n",
                true,
            ),
            (
                "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
                true,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
                true,
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                true,
            ),
        ] {
            let more = format!("{text}GET /");
            let reply = reply(more.as_bytes(), 443).unwrap();
            assert!(reply.is_redirect, "{text}");
            assert_eq!(
                (reply.taken, reply.is_last),
                (text.len(), is_last),
                "{text}"
            );
            assert_eq!(reply.text.contains("Connection: close\r\n\r\n"), is_last);
            for cut in 0..text.len() {
                assert_eq!(super::reply(&text.as_bytes()[..cut], 443), None, "{cut}");
            }
        }
    }
}
