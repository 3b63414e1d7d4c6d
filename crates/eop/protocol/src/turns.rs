//! Follows a stream of HTTP/1 to tell whether all requests are answered, so that the next one may go to another
//! server. It does so only while there is no doubt: once the stream is not plainly one request and then its one
//! response, the session stays where it is.

use std::borrow::Cow;

use httparse::{EMPTY_HEADER, Header, Request, Response, Status};

/// The length of the longest head that is read. The bytes of longer heads are passed on without being read.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 96;

/// The state of both directions of a client's session with one server.
#[derive(Debug)]
pub struct Turns {
    state: State,
    passed: u64,
}

#[derive(Debug)]
enum State {
    /// All requests are answered. What has arrived of the next request is held back.
    Quiet { held: Vec<u8> },
    /// The response's head is awaited; `begun` has arrived of it. `of_head`: the request is HEAD.
    Head { of_head: bool, begun: Vec<u8> },
    /// This many bytes of the response's body are awaited.
    Body { rest: u64 },
    /// The state of the stream is unknown, so the session stays where it is.
    Pinned,
}

/// What the relay must do with bytes that a client sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Wait for more bytes.
    Wait,
    /// Pass these bytes to the server.
    Pass(Cow<'a, [u8]>),
    /// Redirect the client or call [`Turns::pass`]: the bytes are a request for this path.
    Ask {
        /// The path, without its query.
        path: Vec<u8>,
    },
}

impl Default for Turns {
    fn default() -> Self {
        Self::new()
    }
}

impl Turns {
    /// Makes the state of a session in which nothing was sent yet.
    pub const fn new() -> Self {
        Self {
            state: State::Quiet { held: Vec::new() },
            passed: 0,
        }
    }

    /// Makes the state of a session that stays where it is, whatever is sent.
    pub const fn pinned() -> Self {
        Self {
            state: State::Pinned,
            passed: 0,
        }
    }

    /// Whether everything that was passed on is answered.
    pub const fn are_quiet(&self) -> bool {
        matches!(self.state, State::Quiet { .. })
    }

    /// How many of the client's bytes were passed on.
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Takes bytes that the client sends.
    pub fn handle_request<'a>(&mut self, bytes: &'a [u8]) -> Step<'a> {
        let State::Quiet { held } = &mut self.state else {
            // These bytes came before the response was complete, or belong to a request's body.
            self.state = State::Pinned;
            self.passed += bytes.len() as u64;
            return Step::Pass(bytes.into());
        };
        held.extend_from_slice(bytes);
        match path(held) {
            Ok(Some(path)) => Step::Ask { path },
            Ok(None) if held.len() <= LONGEST_HEAD => Step::Wait,
            Ok(None) | Err(()) => Step::Pass(self.give_up().into()),
        }
    }

    /// Returns the bytes that were held back. They must go to the server.
    pub fn pass(&mut self) -> Vec<u8> {
        let State::Quiet { held } = &mut self.state else {
            return Vec::new();
        };
        let held = std::mem::take(held);
        self.passed += held.len() as u64;
        self.state = match expects(&held) {
            Some(of_head) => State::Head {
                of_head,
                begun: Vec::new(),
            },
            None => State::Pinned,
        };
        held
    }

    /// Returns the bytes that were held back, which must go to the server: the client has ended its direction, or its
    /// bytes are no request.
    pub fn give_up(&mut self) -> Vec<u8> {
        let held = self.pass();
        self.state = State::Pinned;
        held
    }

    /// Takes bytes that the server sends. If no request has asked for them, returns the bytes that were held back,
    /// which must go to the server.
    #[must_use]
    pub fn handle_response(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (rest, came) = match &mut self.state {
            State::Pinned => return Vec::new(),
            State::Quiet { .. } => return self.give_up(),
            State::Body { rest } => (Some(*rest), bytes.len()),
            State::Head { of_head, begun } => {
                begun.extend_from_slice(bytes);
                match length(begun, *of_head) {
                    Ok(None) if begun.len() <= LONGEST_HEAD => return Vec::new(),
                    Ok(Some((head, body))) => (Some(body), begun.len() - head),
                    Ok(None) | Err(()) => (None, 0),
                }
            }
        };
        self.state = match rest.and_then(|rest| rest.checked_sub(came as u64)) {
            Some(0) => State::Quiet { held: Vec::new() },
            Some(rest) => State::Body { rest },
            None => State::Pinned,
        };
        Vec::new()
    }
}

/// The path of the request whose head `bytes` begin with; `None` until the head is whole.
fn path(bytes: &[u8]) -> Result<Option<Vec<u8>>, ()> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    let Status::Complete(_) = request.parse(bytes).map_err(|_| ())? else {
        return Ok(None);
    };
    let target = request.path.unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    Ok(Some(path.as_bytes().to_vec()))
}

/// If `bytes` are one request without a body and nothing else, returns whether it is HEAD; otherwise `None`.
fn expects(bytes: &[u8]) -> Option<bool> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    let Ok(Status::Complete(length)) = request.parse(bytes) else {
        return None;
    };
    let method = request.method?;
    let plain = matches!(method, "GET" | "HEAD")
        && length == bytes.len()
        && !has(request.headers, "content-length")
        && !has(request.headers, "transfer-encoding")
        && !has(request.headers, "upgrade")
        && !has(request.headers, "expect");
    plain.then_some(method == "HEAD")
}

/// The lengths of a response's head and body, once the head is whole. Fails if the response does not say where it
/// ends, or not in a way that is understood here.
fn length(bytes: &[u8], of_head: bool) -> Result<Option<(usize, u64)>, ()> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut response = Response::new(&mut headers);
    let Status::Complete(head) = response.parse(bytes).map_err(|_| ())? else {
        return Ok(None);
    };
    let status = response.code.ok_or(())?;
    if status < 200 {
        return Err(());
    }
    if of_head || status == 204 || status == 304 {
        return Ok(Some((head, 0)));
    }
    if has(response.headers, "transfer-encoding") {
        return Err(());
    }
    let mut lengths = (response.headers.iter())
        .filter(|header| header.name.eq_ignore_ascii_case("content-length"))
        .map(|header| {
            // A length with a sign is refused.
            let digits = header.value.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(header.value).ok().filter(|_| digits);
            text?.parse().ok()
        });
    match (lengths.next(), lengths.next()) {
        (Some(Some(body)), None) => Ok(Some((head, body))),
        _ => Err(()),
    }
}

fn has(headers: &[Header<'_>], name: &str) -> bool {
    headers
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &[u8] = b"GET /a/b?c=d HTTP/1.1\r\nHost: x\r\n\r\n";
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    fn ask(turns: &mut Turns, request: &[u8]) {
        let asked = turns.handle_request(request);
        assert!(matches!(asked, Step::Ask { .. }), "{asked:?}");
        assert_eq!(turns.pass(), request);
    }

    /// Takes a response while nothing is held back.
    fn respond(turns: &mut Turns, response: &[u8]) {
        assert_eq!(turns.handle_response(response), b"");
    }

    #[test]
    fn one_request_then_its_response_however_they_are_cut() {
        for cut in 1..OK.len() {
            let mut turns = Turns::new();
            let (first, second) = GET.split_at(cut.min(GET.len() - 1));
            assert_eq!(turns.handle_request(first), Step::Wait);
            assert_eq!(turns.passed(), 0);
            let path = b"/a/b".to_vec();
            assert_eq!(turns.handle_request(second), Step::Ask { path });
            assert_eq!(turns.pass(), GET);
            assert!(!turns.are_quiet());
            let (first, second) = OK.split_at(cut);
            respond(&mut turns, first);
            assert!(!turns.are_quiet(), "{cut}");
            respond(&mut turns, second);
            assert!(turns.are_quiet(), "{cut}");
            assert_eq!(turns.passed(), GET.len() as u64);
        }
    }

    #[test]
    fn responses_without_a_body_end_with_their_head() {
        let mut turns = Turns::new();
        ask(&mut turns, b"HEAD / HTTP/1.1\r\n\r\n");
        respond(&mut turns, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        assert!(turns.are_quiet());
        ask(&mut turns, GET);
        respond(&mut turns, b"HTTP/1.1 304 Not Modified\r\n\r\n");
        assert!(turns.are_quiet());
    }

    #[test]
    fn whatever_is_doubtful_pins() {
        let requests: [&[u8]; 5] = [
            b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            b"PUT / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
        ];
        for request in requests {
            let mut turns = Turns::new();
            ask(&mut turns, request);
            respond(&mut turns, OK);
            assert!(!turns.are_quiet());
        }
        let responses: [&[u8]; 7] = [
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy",
            b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
            b"+OK\r\n",
        ];
        for response in responses {
            let mut turns = Turns::new();
            ask(&mut turns, GET);
            respond(&mut turns, response);
            assert!(!turns.are_quiet());
            respond(&mut turns, OK);
            assert!(!turns.are_quiet());
        }
    }

    #[test]
    fn a_request_before_its_time_pins() {
        let mut turns = Turns::new();
        ask(&mut turns, GET);
        respond(&mut turns, &OK[..OK.len() - 1]);
        assert_eq!(turns.handle_request(GET), Step::Pass(GET.into()));
        respond(&mut turns, b"o");
        assert!(!turns.are_quiet());
    }

    #[test]
    fn what_is_held_back_goes_on_if_the_server_speaks_unasked() {
        let (first, second) = GET.split_at(9);
        let mut turns = Turns::new();
        assert_eq!(turns.handle_request(first), Step::Wait);
        assert_eq!(
            turns.handle_response(b"HTTP/1.1 408 Request Timeout\r\n"),
            first
        );
        assert_eq!(turns.handle_request(second), Step::Pass(second.into()));
        assert_eq!(turns.passed(), GET.len() as u64);

        let mut turns = Turns::new();
        let path = b"/a/b".to_vec();
        assert_eq!(turns.handle_request(GET), Step::Ask { path });
        assert_eq!(turns.handle_response(b"+OK\r\n"), GET);
        assert_eq!(turns.pass(), b"");
        assert!(!turns.are_quiet());
    }

    #[test]
    fn what_is_no_request_passes_whole() {
        let mut turns = Turns::new();
        assert_eq!(turns.handle_request(b"HE"), Step::Wait);
        let passed = turns.handle_request(b"LO\0\0").clone_owned();
        assert_eq!(passed, b"HELO\0\0");
        assert_eq!(turns.passed(), 6);
        let mut turns = Turns::pinned();
        assert_eq!(turns.handle_request(GET), Step::Pass(GET.into()));
    }

    impl Step<'_> {
        fn clone_owned(&self) -> Vec<u8> {
            match self {
                Step::Pass(bytes) => bytes.to_vec(),
                other => panic!("{other:?}"),
            }
        }
    }
}
