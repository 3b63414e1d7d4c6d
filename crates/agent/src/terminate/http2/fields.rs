//! The fields of a message that are about one connection only, and end with it (RFC 9110, section 7.6.1).

use hyper::HeaderMap;
use hyper::header::{CONNECTION, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};

/// Takes away what is only about the connection that the message has come by. HTTP/2 has no such fields (RFC 9113,
/// section 8.2.2), and those of HTTP/1 are the server's and the agent's.
pub(super) fn end_with_connection(fields: &mut HeaderMap) {
    const OTHERS: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];
    let lists = fields.get_all(CONNECTION).iter();
    let named: Vec<HeaderName> = lists
        .flat_map(|list| list.as_bytes().split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    let others = OTHERS.map(HeaderName::from_static).into_iter();
    for name in
        (named.into_iter().chain(others)).chain([CONNECTION, TE, TRANSFER_ENCODING, UPGRADE])
    {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_connection_end_with_it() {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-One"),
            ("connection", "x-two ,,"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-two", "3"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("content-length", "5"),
            ("trailer", "x"),
        ] {
            fields.append(name, value.parse().unwrap());
        }
        end_with_connection(&mut fields);
        let mut left: Vec<_> = fields.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "trailer"]);
    }
}
