//! Fuzzes the reading of requests for the rules, from a whole request and from its beginning. The first byte is the
//! length of that beginning.

use baton_core::rules::{Body, Request, head_length};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some((&cut, text)) = bytes.split_first() else {
        return;
    };
    let Ok(Some(whole)) = Request::read(text) else {
        return;
    };
    look_at(&whole);
    // A request of HTTP/0.9 has no header, and no empty line at its end.
    let line = text.trim_ascii_start().split(|&byte| byte == b'\n').next();
    let has_version = line.is_some_and(|line| line.windows(6).any(|here| here == b" HTTP/"));
    if has_version && whole.has_head() && whole.body() != Body::Unknown {
        assert!(head_length(text).is_some(), "where does the head end?");
    }
    let beginning = &text[..text.len().min(cut.into())];
    let begun = Request::read(beginning).expect("a request is refused by its beginning");
    let Some(begun) = begun else {
        return;
    };
    look_at(&begun);
    if begun.decoded_path().is_some() {
        assert_eq!(begun.path(), whole.path(), "another path follows");
    }
    let has_line = beginning.trim_ascii_start().contains(&b'\n');
    let has_host = !begun.host().is_empty() || begun.has_head();
    if has_line && has_host && begun.decoded_path().is_some() {
        assert_eq!(begun.target(), whole.target(), "another target follows");
        assert_eq!(begun.host(), whole.host(), "another host follows");
    }
}

/// Reads everything of a request that conditions look at.
fn look_at(request: &Request) {
    let names = ["", "a", "Host", "content-length"];
    for name in names {
        let values = (request.headers(name))
            .chain(request.cookies(name))
            .chain(request.queries(name));
        assert!(values.map(<[u8]>::len).all(|bytes| bytes < usize::MAX));
    }
    let decoded = request.decoded_path();
    assert!(decoded.is_none_or(|path| path.len() <= request.path().as_bytes().len()));
}
