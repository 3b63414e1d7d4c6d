//! The head that a server gets of a request that came by TLS.

use std::net::Ipv4Addr;

use super::verdict::hide_http2;

/// Tells the server that its client speaks HTTPS. Clients cannot say this themselves.
const SCHEME: &str = "X-Forwarded-Proto";
/// Tells the server the client's address, where it cannot see it. Clients cannot say this themselves either.
const ADDRESS: &str = "X-Forwarded-For";
/// Names fields that a server is to leave out if it passes the request on (RFC 9110, section 7.6.1).
const CONNECTION: &str = "Connection";

const VERSION: &[u8] = b" HTTP/";

/// Makes the head that the server gets from the one that the client has sent. It differs in these points: the field
/// `X-Forwarded-Proto` says "https", `X-Forwarded-For` says the client's address if there is one here, the client cannot
/// have these fields left out later, `h2c` is no longer asked for, and empty lines before the request are gone. `None`:
/// the request has no version, so it has no fields either (HTTP/0.9).
pub(crate) fn for_server(head: &[u8], client: Option<Ipv4Addr>) -> Option<Vec<u8>> {
    let is_empty = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let begin = head.iter().position(|byte| !is_empty(byte));
    let mut lines = head[begin.unwrap_or(head.len())..].split_inclusive(|&byte| byte == b'\n');
    let mut text = Vec::with_capacity(head.len() + 64);
    let line = lines.next().unwrap_or_default();
    if !line.windows(VERSION.len()).any(|text| text == VERSION) {
        return None;
    }
    text.extend(line);
    text.extend(format!("{SCHEME}: https\r\n").as_bytes());
    if let Some(client) = client {
        text.extend(format!("{ADDRESS}: {client}\r\n").as_bytes());
    }
    let is_own =
        |line: &[u8]| is_named(line, SCHEME) || (client.is_some() && is_named(line, ADDRESS));
    for line in lines.filter(|line| !is_own(line)) {
        let begin = text.len();
        text.extend(line);
        if is_named(line, CONNECTION) {
            keep_own_fields(&mut text[begin..]);
        }
    }
    hide_http2(&mut text);
    Some(text)
}

/// Whether this line has the field of this name.
fn is_named(line: &[u8], name: &str) -> bool {
    let Some((given, rest)) = line.split_at_checked(name.len()) else {
        return false;
    };
    is_alike(given, name) && rest.trim_ascii_start().starts_with(b":")
}

/// Whether servers may take the one name for the other: those that fill variables with fields take `_` for `-`.
fn is_alike(given: &[u8], name: &str) -> bool {
    let alike = |(given, byte): (&u8, u8)| {
        let given = if *given == b'_' { b'-' } else { *given };
        given.eq_ignore_ascii_case(&byte)
    };
    given.len() == name.len() && given.iter().zip(name.bytes()).all(alike)
}

/// Makes the names of the agent's own fields unreadable in a line `Connection`. Its length stays the same.
fn keep_own_fields(line: &mut [u8]) {
    for item in line.split_mut(|byte| matches!(byte, b':' | b',' | b' ' | b'\t' | b'\r' | b'\n')) {
        if is_alike(item, SCHEME) || is_alike(item, ADDRESS) {
            item.fill(b'-');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(head: &str) -> String {
        String::from_utf8(for_server(head.as_bytes(), None).unwrap()).unwrap()
    }

    #[test]
    fn a_request_without_a_version_has_no_room_for_fields() {
        assert_eq!(for_server(b"GET /\r\n\r\n", None), None);
    }

    #[test]
    fn a_server_is_told_that_its_client_speaks_https() {
        assert_eq!(
            seen("\r\nGET /a HTTP/1.1\r\nHost: b\r\nCookie: c=d\r\n\r\n"),
            "GET /a HTTP/1.1\r\nX-Forwarded-Proto: https\r\nHost: b\r\nCookie: c=d\r\n\r\n"
        );
        let said = "GET / HTTP/1.1\nx-forwarded_proto : http\nX-Forwarded-Proto: ftp\nX-Forwarded-Protocol: a\nUpgrade: h2c\n\n";
        assert_eq!(
            seen(said),
            "GET / HTTP/1.1\nX-Forwarded-Proto: https\r\nX-Forwarded-Protocol: a\nUpgrade: ---\n\n"
        );
    }

    #[test]
    fn a_client_does_not_say_its_own_address() {
        let head = "GET / HTTP/1.1\r\nX-Forwarded-For: 192.0.2.1\r\nHost: b\r\nx_forwarded_for : 192.0.2.2\r\n\
                    X-Forwarded-Foreign: a\r\nX-Forwarded-For-: a\r\n\r\n";
        let client = Some(Ipv4Addr::new(203, 0, 113, 7));
        let text = for_server(head.as_bytes(), client).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "GET / HTTP/1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 203.0.113.7\r\nHost: b\r\n\
             X-Forwarded-Foreign: a\r\nX-Forwarded-For-: a\r\n\r\n"
        );
        // A server that is told otherwise gets it as it is.
        let kept = head.replace("1.1\r\n", "1.1\r\nX-Forwarded-Proto: https\r\n");
        assert_eq!(seen(head), kept);
    }

    #[test]
    fn a_client_does_not_have_the_agents_fields_left_out() {
        let head = "GET / HTTP/1.1\r\nConnection: close, x-forwarded-for,X_Forwarded_Proto , X-Other\r\nA: X-Forwarded-For\r\n\r\n";
        assert_eq!(
            seen(head),
            "GET / HTTP/1.1\r\nX-Forwarded-Proto: https\r\nConnection: close, ---------------,----------------- , X-Other\r\n\
             A: X-Forwarded-For\r\n\r\n"
        );
    }
}
