//! What is read of a request, and what of a part of one.

use baton_core::rules::Request;

use crate::read;

const WHOLE: &str = "GET /a/b?c=d HTTP/1.1\r\nHost: Www.Example.org:80\r\nCookie: x=1\r\n\r\n";

#[test]
fn all_of_it() {
    let request = read(WHOLE);
    assert_eq!(request.method(), b"GET");
    assert_eq!(request.target(), b"/a/b?c=d");
    assert_eq!(request.path(), Some(&b"/a/b"[..]));
    assert_eq!(request.host(), "www.example.org");
    assert_eq!(request.queries("c").collect::<Vec<_>>(), [b"d"]);
    assert_eq!(request.cookies("x").collect::<Vec<_>>(), [b"1"]);
}

/// Cut at every byte: what is said of the part is what the whole says, or nothing.
#[test]
fn any_part_of_it() {
    let whole = read(WHOLE);
    for end in 0..WHOLE.len() {
        let Some(part) = Request::read(&WHOLE.as_bytes()[..end]) else {
            assert!(end < "GET /".len(), "{end}");
            continue;
        };
        assert_eq!(part.method(), b"GET");
        assert!(whole.target().starts_with(part.target()), "{end}");
        assert!(part.path().is_none_or(|path| path == b"/a/b"), "{end}");
        assert!(part.queries("c").all(|value| value == b"d"), "{end}");
        assert!(["", "www.example.org"].contains(&&*part.host()), "{end}");
        assert!(part.cookies("x").all(|value| value == b"1"), "{end}");
        let line = WHOLE.find("Cookie").unwrap();
        assert_eq!(part.host().is_empty(), end < line, "{end}");
        assert_eq!(part.path().is_none(), end < "GET /a/b?".len(), "{end}");
    }
}

#[test]
fn what_begins_no_request() {
    for text in [
        "",
        "\r\n",
        "GET",
        "GET ",
        "get / HTTP/1.1\r\n",
        " / a",
        "\0\u{1}",
        "GET  / HTTP/1.1",
    ] {
        assert_eq!(Request::read(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn lines_that_are_no_header_leave_the_request_line() {
    let request = read("GET /a HTTP/1.1\r\nno header\r\nX: y\r\n\r\n");
    assert_eq!(request.path(), Some(&b"/a"[..]));
    assert_eq!(request.headers("x").count(), 0);
}

#[test]
fn as_many_lines_as_fit() {
    let lines = "a:\r\n".repeat(500);
    let request = read(&format!("GET / HTTP/1.1\r\n{lines}\r\n"));
    assert_eq!(request.headers("A").count(), 500);
}
