//! Fuzzes both directions of an HTTP/1 session. Whenever the session is said to be quiet, all that was passed on must
//! be requests without bodies, and all that came back one whole response to each. The input consists of pieces: a byte
//! that says which side sends the piece and whether it is decided at once where its request goes, a byte that gives
//! the piece's length, and the piece itself.

use baton_core::rules::{Body, Request, head_length};
use eop_protocol::turns::{Step, Turns};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut turns = Turns::new();
    let (mut sent, mut passed, mut answered) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = bytes;
    while let [side, length, behind @ ..] = rest {
        let (piece, behind) = behind.split_at(behind.len().min((*length).into()));
        rest = behind;
        // Empty pieces are left out, because no read returns an empty piece.
        if piece.is_empty() {
            continue;
        }
        if side & 1 != 0 {
            answered.extend(piece);
            passed.extend(turns.handle_response(piece));
        } else {
            sent.extend(piece);
            match turns.handle_request(piece) {
                Step::Wait => assert!(turns.are_quiet()),
                Step::Pass(piece) => passed.extend(&*piece),
                Step::Ask { path } => {
                    assert!(turns.are_quiet());
                    let held = &sent[passed.len()..];
                    let is_in = held.windows(path.len().max(1)).any(|here| here == path);
                    assert!(path.is_empty() || is_in, "made up");
                    if side & 2 == 0 {
                        passed.extend(turns.pass());
                    }
                }
            }
        }
        assert!(sent.starts_with(&passed), "other bytes than were sent");
        assert_eq!(turns.passed(), passed.len() as u64);
        if turns.are_quiet() {
            check(&passed, &answered);
        } else {
            assert_eq!(passed, sent, "held back for nothing");
        }
    }
    passed.extend(turns.give_up());
    assert_eq!(passed, sent, "bytes were lost");
    assert!(!turns.are_quiet());
}

/// Panics unless these are requests and the whole responses to them.
fn check(mut requests: &[u8], mut responses: &[u8]) {
    while !requests.is_empty() {
        let length = head_length(requests).expect("a request is not whole");
        let (head, behind) = requests.split_at(length);
        requests = behind;
        // Servers may refuse what is read as a request here, but they cannot see a body in it.
        if let Ok(Some(request)) = Request::read(head) {
            assert_eq!(request.body(), Body::Bytes(0), "where does it end?");
        }
        let of_head = head.trim_ascii_start().starts_with(b"HEAD ");
        let length = response_length(responses, of_head).expect("where does the response end?");
        assert!(length <= responses.len(), "a response is not whole");
        responses = &responses[length..];
    }
    assert!(responses.is_empty(), "nobody has asked for this");
}

/// The length of the response with which these bytes begin, by RFC 9112, 6.3. `None` if some reader may see another
/// length.
fn response_length(bytes: &[u8], of_head: bool) -> Option<usize> {
    let head = head_length(bytes)?;
    let text: Vec<_> = (bytes[..head].trim_ascii_start())
        .split(|&byte| byte == b'\n')
        .map(|line| line.trim_ascii())
        .collect();
    let (line, fields) = text.split_first()?;
    let status = line.split(|&byte| byte == b' ').nth(1)?;
    let status: u16 = std::str::from_utf8(status).ok()?.parse().ok()?;
    if status < 200 {
        return None;
    }
    if of_head || matches!(status, 204 | 304) {
        return Some(head);
    }
    let mut lengths = Vec::new();
    for field in fields.iter().filter(|field| !field.is_empty()) {
        let colon = field.iter().position(|&byte| byte == b':')?;
        let (name, value) = (&field[..colon], field[colon + 1..].trim_ascii());
        if name.trim_ascii().eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
        if name.trim_ascii().eq_ignore_ascii_case(b"content-length") {
            lengths.push(value);
        }
    }
    let [length] = lengths[..] else {
        return None;
    };
    if length.is_empty() || !length.iter().all(u8::is_ascii_digit) {
        return None;
    }
    head.checked_add(std::str::from_utf8(length).ok()?.parse().ok()?)
}
