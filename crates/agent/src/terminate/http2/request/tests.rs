use super::*;

/// A request of HTTP/2: the method, the URI with `:authority` if it has one, and its fields.
fn client(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
    let mut request = hyper::Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.version(Version::HTTP_2);
    request.body(()).unwrap().into_parts().0
}

/// What the server gets, with its fields in order of their names.
fn seen(client: Parts, has_body: bool) -> Result<String, Answer> {
    let text = String::from_utf8(head(&for_server(client, has_body, None)?)?).unwrap();
    let mut lines: Vec<_> = text.trim_end().split("\r\n").collect();
    lines[1..].sort_unstable();
    Ok(lines.join("\n"))
}

#[test]
fn a_server_gets_a_request_of_http_1() {
    let fields = [
        ("accept", "a"),
        ("cookie", "a=b"),
        ("x-forwarded-proto", "http"),
        ("X_Forwarded_Proto", "ftp"),
        ("x-forwarded-protocol", "x"),
        ("cookie", "c=d; e=f"),
        ("accept", "b"),
        ("expect", "100-continue"),
        ("upgrade", "websocket"),
        ("keep-alive", "5"),
        ("te", "trailers"),
    ];
    let get = client("GET", "https://www.example:8443/a%20b?c=d", &fields);
    let lines = [
        "GET /a%20b?c=d HTTP/1.1",
        "accept: a",
        "accept: b",
        "connection: te",
        "cookie: a=b; c=d; e=f",
        "host: www.example:8443",
        "te: trailers",
        "x-forwarded-proto: https",
        "x-forwarded-protocol: x",
    ];
    assert_eq!(seen(get, false).unwrap(), lines.join("\n"));
}

#[test]
fn a_body_has_a_length_or_chunks() {
    for (method, has_body, fields, line) in [
        ("GET", false, &[][..], ""),
        ("POST", true, &[], "\ntransfer-encoding: chunked"),
        ("GET", true, &[], "\ntransfer-encoding: chunked"),
    ] {
        let said = seen(client(method, "https://a/", fields), has_body).unwrap();
        let head = format!("{method} / HTTP/1.1\nhost: a{line}\nx-forwarded-proto: https");
        assert_eq!(said, head);
    }
    let twice = [("content-length", "5"), ("content-length", "5")];
    for fields in [&twice[..1], &twice] {
        let said = seen(client("POST", "https://a/", fields), true).unwrap();
        let head = "POST / HTTP/1.1\ncontent-length: 5\nhost: a\nx-forwarded-proto: https";
        assert_eq!(said, head);
    }
    let nothing = client("POST", "https://a/", &[("content-length", "0")]);
    assert!(
        seen(nothing, false)
            .unwrap()
            .contains("\ncontent-length: 0\n")
    );
}

#[test]
fn a_host_is_named_once() {
    let host = |uri, fields: &[(&str, &str)]| {
        let request = for_server(client("GET", uri, fields), false, None)?;
        Ok(request.headers[HOST].to_str().unwrap().to_owned())
    };
    assert_eq!(host("https://a.b/", &[]).as_deref(), Ok("a.b"));
    assert_eq!(host("/", &[("host", "a.b")]).as_deref(), Ok("a.b"));
    let same = [("host", "A.b")];
    assert_eq!(host("https://a.b/", &same).as_deref(), Ok("a.b"));
    for (uri, fields) in [
        ("/", &[][..]),
        ("/", &[("host", "a"), ("host", "b")]),
        ("https://a/", &[("host", "a"), ("host", "a")]),
        ("https://a/", &[("host", "b")]),
        ("https://user@a/", &[]),
    ] {
        assert_eq!(host(uri, fields), Err(Answer::Bad), "{uri} {fields:?}");
    }
}

#[test]
fn what_servers_could_read_differently_is_refused() {
    for (method, uri, fields, has_body) in [
        ("CONNECT", "a:443", &[][..], false),
        ("GET", "*", &[("host", "a")], false),
        ("POST", "https://a/", &[("content-length", "+5")], true),
        ("POST", "https://a/", &[("content-length", "5, 5")], true),
        ("POST", "https://a/", &[("content-length", "")], true),
        ("GET", "https://a/", &[("content-length", "5")], false),
        (
            "POST",
            "https://a/",
            &[("content-length", "5"), ("content-length", "6")],
            true,
        ),
    ] {
        let said = seen(client(method, uri, fields), has_body);
        assert_eq!(said, Err(Answer::Bad), "{method} {uri} {fields:?}");
    }
    let options = client("OPTIONS", "*", &[("host", "a")]);
    assert!(
        seen(options, false)
            .unwrap()
            .starts_with("OPTIONS * HTTP/1.1\n")
    );
    // A length does not stand beside chunks, whatever the client says.
    let both = [("content-length", "5"), ("transfer-encoding", "chunked")];
    let said = seen(client("POST", "https://a/", &both), true).unwrap();
    assert!(!said.contains("chunked"), "{said}");
}

#[test]
fn a_client_does_not_say_its_own_address() {
    let fields = [
        ("x-forwarded-for", "192.0.2.1"),
        ("x_forwarded_for", "192.0.2.2"),
        ("x-forwarded-for", "192.0.2.3"),
        ("x-forwarded-foreign", "a"),
    ];
    let seen = |forwarded_for| {
        let client = client("GET", "https://a/", &fields);
        let request = for_server(client, false, forwarded_for).unwrap();
        let fields = request.headers.iter();
        let fields = fields.filter(|(name, _)| name.as_str().contains("for"));
        let fields = fields.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let mut fields: Vec<_> = fields.collect();
        fields.sort_unstable();
        fields
    };
    assert_eq!(
        seen(Some(Ipv4Addr::new(203, 0, 113, 7))),
        [
            "x-forwarded-for: 203.0.113.7",
            "x-forwarded-foreign: a",
            "x-forwarded-proto: https"
        ]
    );
    // A server that is told otherwise gets it as it is.
    assert_eq!(seen(None).len(), fields.len() + 1);
}
