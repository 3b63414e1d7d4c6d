//! The head that a server gets of a request that came by TLS.

use super::verdict::hide_http2;

/// Tells the server that its client speaks HTTPS. Clients cannot say this themselves.
const SCHEME: &str = "X-Forwarded-Proto";

const VERSION: &[u8] = b" HTTP/";

/// Makes the head that the server gets from the one that the client has sent. It differs in three points: `h2c` is no
/// longer asked for, the field `X-Forwarded-Proto` says "https", and empty lines before the request are gone. `None`: the
/// request has no version, so it has no fields either (HTTP/0.9).
pub(crate) fn for_server(head: &[u8]) -> Option<Vec<u8>> {
    let is_empty = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let begin = head.iter().position(|byte| !is_empty(byte));
    let mut lines = head[begin.unwrap_or(head.len())..].split_inclusive(|&byte| byte == b'\n');
    let mut text = Vec::with_capacity(head.len() + 32);
    let line = lines.next().unwrap_or_default();
    if !line.windows(VERSION.len()).any(|text| text == VERSION) {
        return None;
    }
    text.extend(line);
    text.extend(format!("{SCHEME}: https\r\n").as_bytes());
    text.extend(lines.filter(|line| !is_named(line, SCHEME)).flatten());
    hide_http2(&mut text);
    Some(text)
}

/// Whether this line has the field of this name. Servers that fill variables with fields take `_` for `-`.
fn is_named(line: &[u8], name: &str) -> bool {
    let Some(given) = line.get(..name.len()) else {
        return false;
    };
    let alike = |(given, byte): (&u8, u8)| {
        let given = if *given == b'_' { b'-' } else { *given };
        given.eq_ignore_ascii_case(&byte)
    };
    let rest = line[name.len()..].trim_ascii_start();
    given.iter().zip(name.bytes()).all(alike) && rest.starts_with(b":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(head: &str) -> String {
        String::from_utf8(for_server(head.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_request_without_a_version_has_no_room_for_fields() {
        assert_eq!(for_server(b"GET /\r\n\r\n"), None);
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
}
