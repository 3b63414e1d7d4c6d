//! What is read of a request and of a part of one; which oddities servers forgive, and which they refuse.

use baton_core::rules::{BadRequest, Body, Request};
use baton_wire::BadPath;

use super::read;

const WHOLE: &str = "GET /a//%62?c=d HTTP/1.1\r\nHost: Www.Example.org:80\r\nCookie: x=1\r\n\r\n";

#[test]
fn all_of_it() {
    let request = read(WHOLE);
    assert_eq!(request.method(), b"GET");
    assert_eq!(request.target(), b"/a/b?c=d");
    assert_eq!(request.path().as_bytes(), b"/a/b");
    assert_eq!(request.decoded_path().unwrap(), b"/a/b");
    assert_eq!(request.host(), "www.example.org");
    assert_eq!(request.queries("c").collect::<Vec<_>>(), [b"d"]);
    assert_eq!(request.cookies("x").collect::<Vec<_>>(), [b"1"]);
}

/// The request is cut at every byte. The part never says anything else than the whole, but may say nothing.
#[test]
fn any_part_of_it() {
    let whole = read(WHOLE);
    for end in 0..WHOLE.len() {
        let Some(part) = Request::read(&WHOLE.as_bytes()[..end]).unwrap() else {
            assert!(end < "GET /".len(), "{end}");
            continue;
        };
        assert_eq!(part.method(), b"GET");
        assert!(
            whole.target().starts_with(part.target().trim_ascii_end()) || end < "GET /a//%62".len(),
            "{end}"
        );
        let path = part.decoded_path();
        assert!(path.as_ref().is_none_or(|path| path == b"/a/b"), "{end}");
        assert!(part.queries("c").all(|value| value == b"d"), "{end}");
        assert!(["", "www.example.org"].contains(&part.host()), "{end}");
        assert!(part.cookies("x").all(|value| value == b"1"), "{end}");
        let line = WHOLE.find("Cookie").unwrap();
        assert_eq!(part.host().is_empty(), end < line, "{end}");
        assert_eq!(path.is_none(), end < "GET /a//%62?".len(), "{end}");
    }
}

#[test]
fn too_little_to_say() {
    for text in ["", "\r\n", "\r\n\r", "G", "GET", "GET ", "GET   ", "get"] {
        assert_eq!(Request::read(text.as_bytes()), Ok(None), "{text:?}");
    }
    for text in ["GET http:", "GET http://a.b", "GET h"] {
        let request = Request::read(text.as_bytes()).unwrap().unwrap();
        assert_eq!(request.decoded_path(), None, "{text:?}");
    }
}

#[test]
fn what_servers_refuse() {
    for (text, bad) in [
        (" GET / HTTP/1.1\r\n", BadRequest::Method),
        ("GET\t/ HTTP/1.1\r\n", BadRequest::Method),
        ("\0\u{1}", BadRequest::Method),
        ("\u{16}\u{3}\u{1}\u{2}", BadRequest::Method),
        ("GET\r\n", BadRequest::Method),
        ("GET a/ HTTP/1.1\r\n", BadRequest::Target),
        ("GET \\ds1 HTTP/1.1\r\n", BadRequest::Target),
        ("GET http:/a HTTP/1.1\r\n", BadRequest::Target),
        ("GET a.b:80 HTTP/1.1\r\n", BadRequest::Target),
        ("GET /a\tb HTTP/1.1\r\n", BadRequest::Target),
        ("GET /a\rb HTTP/1.1\r\n", BadRequest::Target),
        ("GET http:///a HTTP/1.1\r\n", BadRequest::Host),
        ("GET http://u@a/ HTTP/1.1\r\n", BadRequest::Host),
        ("GET http://a:b/ HTTP/1.1\r\n", BadRequest::Host),
        ("GET http://a#b HTTP/1.1\r\n", BadRequest::Host),
        ("GET http://[::1]x/ HTTP/1.1\r\n", BadRequest::Host),
        ("GET /.. HTTP/1.1\r\n", BadPath::AboveRoot.into()),
        ("GET /%zz HTTP/1.1\r\n", BadPath::Escape.into()),
        ("GET /%00 HTTP/1.1\r\n", BadPath::Nul.into()),
        ("GET http://a/../ HTTP/1.1\r\n", BadPath::AboveRoot.into()),
        ("GET / x HTTP/1.1\r\n", BadRequest::Version),
        ("GET / http/1.1\r\n", BadRequest::Version),
        ("GET / HTTP/1\r\n", BadRequest::Version),
        ("POST /\r\n", BadRequest::Version),
        ("GET / HTTP/1.1\r\nHost : a\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\n folded\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\nHost:\r\n a\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\n: a\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\nno header\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\nX: a\rHost: b\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\nX: \0\r\n", BadRequest::Line),
        ("GET / HTTP/1.1\r\nHost:\r\n\r\n", BadRequest::Host),
        ("GET / HTTP/1.1\r\nHost: .\r\n", BadRequest::Host),
        ("GET / HTTP/1.1\r\nHost: :80\r\n", BadRequest::Host),
        ("GET / HTTP/1.1\r\nHost: a..b\r\n", BadRequest::Host),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n", BadRequest::Host),
        ("GET / HTTP/1.1\r\nHost: a b\r\n", BadRequest::Host),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n",
            BadRequest::Hosts,
        ),
    ] {
        let read = Request::read(text.as_bytes());
        assert_eq!(read, Err(bad), "{text:?}");
    }
}

#[test]
fn what_servers_forgive() {
    for text in [
        "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "\n\r\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET   /a   HTTP/1.1  \r\nHost:a\r\n\r\n",
        "GET /a HTTP/1.1\nHost: a.\n\nHost: b\n",
        "GET /a HTTP/1.0\r\r\nHost:  a \r\r\n\r\n",
        "GET /a HTTP/1.1\r\nno-colon\r\nHOST: A:80\r\n\r\nX: y\r\n",
        "GET http://a/a HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET x+1.-://a.:80/a HTTP/1.1\r\nHost: b\r\n\r\n",
    ] {
        let request = read(text);
        assert_eq!(request.target(), b"/a", "{text:?}");
        assert_eq!(request.host(), "a", "{text:?}");
    }
    for (line, path) in [("GET /a", &b"/a"[..]), ("GET //a ", b"/a")] {
        let request = read(&format!("{line}\r\nHost: a\r\n\r\n"));
        assert_eq!(request.path().as_bytes(), path);
        assert!(request.host().is_empty());
    }
    assert_eq!(read("GET http://[::1]:80?x HTTP/1.1\r\n").host(), "[::1]");
}

#[test]
fn before_chunks_were_known_nothing_is_chunked() {
    for (version, body) in [
        ("HTTP/1.1", Body::Chunked),
        ("HTTP/1.10 ", Body::Chunked),
        ("HTTP/2.0", Body::Chunked),
        ("HTTP/1.0", Body::Unknown),
        ("HTTP/1.00", Body::Unknown),
        ("HTTP/0.9", Body::Unknown),
        ("HTTP/1.99999999999", Body::Unknown),
    ] {
        let request = read(&format!(
            "POST / {version}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ));
        assert_eq!(request.body(), body, "{version}");
        assert_eq!(request.body_before_switch(), body, "{version}");
    }
}

/// A request must not be refused because of where a segment ends.
#[test]
fn no_beginning_is_refused() {
    for text in [
        "\n\r\r\nGET /a%62/../c?d HTTP/1.0\r\r\nHost:  a \r\r\n\r\n",
        "GET x+1.-://a.:80/a HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET /a\r\nHost: a\r\n\r\n",
        "GET //a?b\r\r\n",
    ] {
        assert!(matches!(Request::read(text.as_bytes()), Ok(Some(_))));
        for end in 0..text.len() {
            let read = Request::read(&text.as_bytes()[..end]);
            assert!(read.is_ok(), "{:?}: {read:?}", &text[..end]);
        }
    }
}

/// Such a request is about the server itself, not about one of its resources.
#[test]
fn no_path() {
    for text in [
        "OPTIONS * HTTP/1.1\r\n",
        "CONNECT a:443 HTTP/1.1\r\n",
        "PRI * HTTP/2.0\r\n",
    ] {
        let request = read(text);
        assert_eq!(
            request.path().hash(baton_wire::HashKey::from_words([1, 2])),
            None,
            "{text:?}"
        );
        assert_eq!(request.target(), b"", "{text:?}");
    }
}

#[test]
fn as_many_lines_as_fit() {
    let lines = "a:\r\n".repeat(500);
    let request = read(&format!("GET / HTTP/1.1\r\n{lines}\r\n"));
    assert_eq!(request.headers("A").count(), 500);
}
