//! HTTP Strict Transport Security (RFC 6797): a response tells browsers to use nothing but HTTPS for its host.

/// The field's name.
const NAME: &[u8] = b"Strict-Transport-Security";

/// Appends the head of a response with this value of the field, unless it has the field already: the server knows better.
pub(crate) fn append_with_hsts(to: &mut Vec<u8>, head: &[u8], value: Option<&str>) {
    let Some(value) = value else {
        return to.extend(head);
    };
    let mut lines = head.split_inclusive(|&byte| byte == b'\n');
    let status = lines.next().unwrap_or_default();
    to.extend(status);
    if !lines.any(is_hsts) {
        for part in [NAME, b": ", value.as_bytes(), b"\r\n"] {
            to.extend(part);
        }
    }
    to.extend(&head[status.len()..]);
}

/// Whether this is a line of the field.
fn is_hsts(line: &[u8]) -> bool {
    line.split(|&byte| byte == b':')
        .next()
        .is_some_and(|name| name.len() < line.len() && name.trim_ascii().eq_ignore_ascii_case(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(head: &str) -> String {
        let told = |value| {
            let mut told = Vec::new();
            append_with_hsts(&mut told, head.as_bytes(), value);
            String::from_utf8(told).unwrap()
        };
        assert_eq!(told(None), head);
        told(Some("max-age=1"))
    }

    #[test]
    fn a_response_without_the_field_gets_it() {
        for (head, rest) in [
            ("HTTP/1.1 200 OK\r\n", "\r\n"),
            ("HTTP/1.1 200 OK\r\n", "Strict-Transport-Securit: a\r\n\r\n"),
            (
                "HTTP/1.1 200 Strict-Transport-Security: a\r\n",
                "A: b\r\n\r\n",
            ),
            ("HTTP/1.1 200 OK\n", "A: strict-transport-security: a\n\n"),
        ] {
            assert_eq!(
                told(&[head, rest].concat()),
                [head, "Strict-Transport-Security: max-age=1\r\n", rest].concat()
            );
        }
    }

    #[test]
    fn what_the_server_says_stays() {
        for line in [
            "Strict-Transport-Security: max-age=0",
            "strict-transport-SECURITY:",
        ] {
            let head = format!("HTTP/1.1 200 OK\r\nA: b\r\n{line}\r\n\r\n");
            assert_eq!(told(&head), head);
        }
    }
}
