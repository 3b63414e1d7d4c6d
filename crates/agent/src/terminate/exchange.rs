//! One client's requests and their responses, in turn: what of a connection's data is passed on, and when. No I/O.
//!
//! A request goes to the server when the response to the one before has ended. So it is always known which server is
//! to have what the client says next.

use std::mem::take;
use std::net::Ipv4Addr;

use baton_core::rules::Request;

use crate::http::answer::Answer;
use crate::http::asked::Asked;
use crate::http::body::{BadBody, Body};
use crate::http::forwarded_head::for_server;
use crate::http::hsts::append_with_hsts;
use crate::http::response_head::{BadResponse, ResponseHead};
use crate::http::verdict::{Extent, Verdict, judge};

/// A client that has more bytes than this of a body still to send does not pause soon.
const LONG_BODY: u64 = 64 << 10;

/// The requests of a client's connection, of which at most one is under way.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    way: Way,
    /// Whether a server has said that nothing follows its response.
    is_last: bool,
}

/// What a connection is doing.
#[derive(Debug, Default)]
enum Way {
    /// No request is under way.
    #[default]
    Idle,
    /// A request has come whose head has this many bytes. It is to be judged whether it is for the server here.
    Read(usize, Under),
    /// That request goes to a server, which has nothing of it yet.
    Accepted(usize, Under),
    /// A request is under way.
    Asked(Under),
    /// The server has agreed to another protocol, so both sides may say what they like.
    Tunnel,
}

/// A request that is under way.
#[derive(Debug)]
struct Under {
    /// The rest of the request's body.
    request: Body,
    /// The rest of the response's body. `None`: the head of the final response has not come.
    response: Option<Body>,
    /// Whether the request is HEAD, whose response has no body.
    is_head: bool,
    /// Whether anything of a response has come.
    is_answered: bool,
    /// Whether the request may be sent twice: it has no body, and servers change nothing by it (RFC 9110, section 9.2.1).
    may_be_repeated: bool,
    /// Whether the client sends the body when it has got a 100 (RFC 9110, section 10.1.1).
    expects_to_be_asked: bool,
}

/// What a client's data has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarded {
    /// What can be passed on has been. More of the client's data is wanted.
    More,
    /// The rest of the client's data is a later request's, which has to wait.
    Waits,
    /// A request has come whose head has this many bytes. It is to be judged whether it is for the server here.
    Judge(usize),
    /// The client's request gets this answer from the agent itself, and the connection ends with it.
    Answer(Answer),
    /// The body of a request breaks the rules, so nobody knows where the next request begins.
    Broken,
}

/// What the end of a server's connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerEnd {
    /// Nothing is missing: the client's connection ends in order.
    Orderly,
    /// The server has not begun to answer, so the agent may do so.
    Unanswered,
    /// A part of a response is missing, and the client must not take what it has for all of it.
    Truncated,
}

impl Exchange {
    /// Takes what can go to the server off the client's data, and appends it to `to_server`. `forwarded_for`: the client's
    /// address, if requests are to say it.
    pub fn forward(
        &mut self,
        plain: &mut Vec<u8>,
        forwarded_for: Option<Ipv4Addr>,
        to_server: &mut Vec<u8>,
    ) -> Forwarded {
        loop {
            match &mut self.way {
                Way::Tunnel => {
                    to_server.append(plain);
                    return Forwarded::More;
                }
                Way::Asked(under) => {
                    let Ok(taken) = under.request.follow(plain) else {
                        return Forwarded::Broken;
                    };
                    to_server.extend_from_slice(&plain[..taken]);
                    plain.drain(..taken);
                    if !under.request.is_whole() {
                        return Forwarded::More;
                    }
                    if !under.is_whole() {
                        return Forwarded::Waits;
                    }
                    self.way = Way::Idle;
                }
                Way::Read(head, _) => return Forwarded::Judge(*head),
                Way::Accepted(..) => {
                    let Way::Accepted(head, under) = take(&mut self.way) else {
                        continue;
                    };
                    // So many bytes of `plain` were read.
                    let head: Vec<u8> = plain.drain(..head).collect();
                    let Some(head) = for_server(&head, forwarded_for) else {
                        return Forwarded::Answer(Answer::Bad);
                    };
                    to_server.extend(head);
                    self.way = Way::Asked(under);
                }
                Way::Idle if plain.is_empty() => return Forwarded::More,
                Way::Idle => match judge(plain) {
                    Verdict::Wait => return Forwarded::More,
                    Verdict::Answer(answer) => return Forwarded::Answer(answer),
                    Verdict::Give { asked, head, body } => {
                        self.way = Way::Read(head as usize, Under::new(&asked, body));
                    }
                },
            }
        }
    }

    /// Whether the client of the request that was read does not pause soon, because it sends a long body. `come`: so many
    /// bytes of the request have come.
    pub fn is_busy_sending(&self, come: usize) -> bool {
        match &self.way {
            Way::Read(head, under) => match under.request {
                Body::Bytes(bytes) if !under.expects_to_be_asked => {
                    bytes > LONG_BODY + (come - head) as u64
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The request that was read is to go to a server.
    pub fn accept(&mut self) {
        self.way = match take(&mut self.way) {
            Way::Read(head, under) => Way::Accepted(head, under),
            way => way,
        };
    }

    /// Takes what can go to the client off the server's data, and appends it to `to_client`. Final responses get this
    /// value of Strict-Transport-Security, unless the server has given them one.
    ///
    /// # Errors
    /// The server has said what is no response, or more than was asked for.
    pub fn back(
        &mut self,
        from_server: &mut Vec<u8>,
        hsts: Option<&str>,
        to_client: &mut Vec<u8>,
    ) -> Result<(), BadResponse> {
        while !from_server.is_empty() {
            let under = match &mut self.way {
                Way::Tunnel => {
                    to_client.append(from_server);
                    return Ok(());
                }
                Way::Asked(under) if !under.has_response() => under,
                _ => return Err(BadResponse),
            };
            under.is_answered = true;
            let Some(body) = &mut under.response else {
                let Some(head) = ResponseHead::read(from_server, under.is_head)? else {
                    return Ok(());
                };
                let hsts = hsts.filter(|_| head.status >= 200);
                self.is_last |= !head.is_kept && head.status >= 200;
                append_with_hsts(to_client, &from_server[..head.length], hsts);
                from_server.drain(..head.length);
                match head.status {
                    101 => self.way = Way::Tunnel,
                    // An interim response comes before the final one (RFC 9110, section 15.2).
                    100..=199 => (),
                    _ => under.response = Some(head.body),
                }
                continue;
            };
            let taken = body.follow(from_server).map_err(|BadBody| BadResponse)?;
            to_client.extend_from_slice(&from_server[..taken]);
            from_server.drain(..taken);
            // What is behind a response nobody has asked for.
            if taken == 0 {
                return Err(BadResponse);
            }
        }
        Ok(())
    }

    /// How many bytes come next of the response's body that need not be read, because nothing about them is of interest
    /// but their number. 0 as long as the client has to send the rest of its request.
    pub fn unread(&self) -> u64 {
        match &self.way {
            Way::Asked(Under {
                request,
                response: Some(Body::Bytes(left)),
                ..
            }) if request.is_whole() => *left,
            _ => 0,
        }
    }

    /// So many bytes of the response's body, which were [unread](Self::unread), have gone to the client.
    pub fn passed_unread(&mut self, bytes: u64) {
        if let Way::Asked(Under {
            response: Some(Body::Bytes(left)),
            ..
        }) = &mut self.way
        {
            *left = left.saturating_sub(bytes);
        }
    }

    /// Whether no request is under way, so that the connection may end here.
    pub fn is_idle(&self) -> bool {
        match &self.way {
            Way::Idle | Way::Read(..) | Way::Accepted(..) => true,
            Way::Asked(under) => under.is_whole(),
            Way::Tunnel => false,
        }
    }

    /// Whether the client may send further requests though the server has ended its connection now.
    pub fn goes_on_without_server(&self) -> bool {
        self.is_idle() && !self.is_last
    }

    /// Whether the request that is under way can be sent once more, because no server has done anything about it, or it
    /// does no harm.
    pub fn can_be_repeated(&self) -> bool {
        matches!(&self.way, Way::Asked(under) if under.may_be_repeated && !under.is_answered)
    }

    /// Whether no request is under way, or all of its response has come.
    pub fn has_whole_response(&self) -> bool {
        match &self.way {
            Way::Idle | Way::Read(..) | Way::Accepted(..) => true,
            Way::Asked(under) => under.has_response(),
            Way::Tunnel => false,
        }
    }

    /// Whether some of a response has come, and not all of it.
    pub fn is_answering(&self) -> bool {
        matches!(&self.way, Way::Asked(under) if under.is_answered)
    }

    /// Whether both sides may say what they like.
    pub fn is_tunnel(&self) -> bool {
        matches!(self.way, Way::Tunnel)
    }

    /// Whether the rest of a request is still to come, so that its client must not end yet.
    pub fn awaits_client(&self) -> bool {
        matches!(&self.way, Way::Asked(under) if !under.request.is_whole())
    }

    /// What the end of the server's connection means now.
    pub fn server_ends(&self) -> ServerEnd {
        match &self.way {
            Way::Idle | Way::Read(..) | Way::Accepted(..) | Way::Tunnel => ServerEnd::Orderly,
            Way::Asked(under) => match under.response {
                Some(Body::UntilEnd) => ServerEnd::Orderly,
                Some(body) if body.is_whole() => ServerEnd::Orderly,
                None if !under.is_answered => ServerEnd::Unanswered,
                _ => ServerEnd::Truncated,
            },
        }
    }
}

impl Under {
    fn new(asked: &Asked, extent: Extent) -> Self {
        let is_empty = matches!(extent, Extent::Bytes(0));
        Self {
            may_be_repeated: is_empty && matches!(asked, Asked::Http(request) if is_safe(request)),
            request: match extent {
                Extent::Bytes(bytes) => Body::Bytes(bytes.into()),
                Extent::Large(bytes) => Body::Bytes(bytes),
                Extent::Chunked => Body::chunked(),
            },
            response: None,
            is_head: matches!(asked, Asked::Http(request) if request.method() == b"HEAD"),
            is_answered: false,
            expects_to_be_asked: matches!(asked, Asked::Http(request) if expects_to_be_asked(request)),
        }
    }

    fn has_response(&self) -> bool {
        self.response.is_some_and(Body::is_whole)
    }

    fn is_whole(&self) -> bool {
        self.request.is_whole() && self.has_response()
    }
}

fn is_safe(request: &Request) -> bool {
    matches!(request.method(), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
}

fn expects_to_be_asked(request: &Request) -> bool {
    let mut expectations = request.headers("expect");
    expectations.any(|value| value.eq_ignore_ascii_case(b"100-continue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

    /// An exchange with the data of both sides.
    #[derive(Default)]
    struct Sides {
        exchange: Exchange,
        plain: Vec<u8>,
        to_server: Vec<u8>,
        to_client: Vec<u8>,
        hsts: Option<&'static str>,
    }

    impl Sides {
        /// The client says this. Returns what the server gets of it, without the line that the agent adds.
        fn client(&mut self, text: &str) -> (Forwarded, String) {
            self.plain.extend(text.as_bytes());
            let mut forwarded = (self.exchange).forward(&mut self.plain, None, &mut self.to_server);
            if let Forwarded::Judge(head) = forwarded {
                assert!(self.plain[..head].ends_with(b"\r\n\r\n"));
                self.exchange.accept();
                forwarded = (self.exchange).forward(&mut self.plain, None, &mut self.to_server);
            }
            let text = String::from_utf8(std::mem::take(&mut self.to_server)).unwrap();
            (forwarded, text.replace("X-Forwarded-Proto: https\r\n", ""))
        }

        /// The server says this. Returns what the client gets of it.
        fn server(&mut self, text: &str) -> Result<String, BadResponse> {
            let mut from_server = text.as_bytes().to_vec();
            self.exchange
                .back(&mut from_server, self.hsts, &mut self.to_client)?;
            assert!(from_server.is_empty(), "{text}");
            Ok(String::from_utf8(std::mem::take(&mut self.to_client)).unwrap())
        }
    }

    #[test]
    fn a_request_waits_for_the_response_to_the_one_before() {
        let mut sides = Sides::default();
        assert!(sides.exchange.is_idle());
        let two = [GET, GET].concat();
        assert_eq!(sides.client(&two), (Forwarded::Waits, GET.to_owned()));
        assert!(!sides.exchange.is_idle());
        assert_eq!(sides.client(""), (Forwarded::Waits, String::new()));
        assert_eq!(sides.server(OK), Ok(OK.to_owned()));
        assert!(sides.exchange.is_idle());
        assert_eq!(sides.client(""), (Forwarded::Waits, GET.to_owned()));
        assert_eq!(sides.server(OK), Ok(OK.to_owned()));
        assert_eq!(sides.client(""), (Forwarded::More, String::new()));
    }

    #[test]
    fn bodies_are_passed_on_as_they_come() {
        let head = "POST / HTTP/1.1\r\nHost: b\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut sides = Sides::default();
        assert_eq!(sides.client(head), (Forwarded::More, head.to_owned()));
        assert!(sides.exchange.awaits_client());
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        assert_eq!(sides.server(interim), Ok(interim.to_owned()));
        assert_eq!(
            sides.client("5\r\nhel"),
            (Forwarded::More, "5\r\nhel".to_owned())
        );
        // The server may answer before it has all.
        assert_eq!(sides.server(OK), Ok(OK.to_owned()));
        assert!(!sides.exchange.is_idle());
        let rest = "lo\r\n0\r\n\r\n";
        let all = [rest, GET].concat();
        assert_eq!(sides.client(&all), (Forwarded::Waits, all));
    }

    #[test]
    fn nothing_is_passed_on_that_could_be_read_in_two_ways() {
        for (text, forwarded) in [
            (
                "GET / HTTP/1.1\r\n folded\r\n\r\n",
                Forwarded::Answer(Answer::Bad),
            ),
            ("GET /\r\n\r\n", Forwarded::Answer(Answer::Bad)),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                Forwarded::Answer(Answer::Bad),
            ),
        ] {
            let mut sides = Sides::default();
            assert_eq!(sides.client(text), (forwarded, String::new()), "{text}");
        }
        let mut sides = Sides::default();
        sides.client("POST / HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert_eq!(sides.client("5\nhello").0, Forwarded::Broken);
    }

    #[test]
    fn a_server_says_no_more_than_it_was_asked_for() {
        let mut sides = Sides::default();
        assert_eq!(sides.server(OK), Err(BadResponse));
        let mut sides = Sides::default();
        sides.client(GET);
        assert_eq!(sides.server(&[OK, OK].concat()), Err(BadResponse));
        let mut sides = Sides::default();
        sides.client("HEAD / HTTP/1.1\r\nHost: b\r\n\r\n");
        assert_eq!(
            sides.server(OK),
            Err(BadResponse),
            "the response to HEAD has no body"
        );
    }

    #[test]
    fn the_rest_of_a_long_response_may_pass_unread() {
        let mut sides = Sides::default();
        assert_eq!(sides.exchange.unread(), 0);
        sides.client(GET);
        assert_eq!(sides.exchange.unread(), 0);
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
        sides.server(&[head, "begins"].concat()).unwrap();
        assert_eq!(sides.exchange.unread(), 99_994);
        sides.exchange.passed_unread(99_000);
        assert_eq!(sides.exchange.unread(), 994);
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Truncated);
        assert!(!sides.exchange.is_idle());
        // The rest may be read again, and a later request finds its place.
        sides.server(&"x".repeat(993)).unwrap();
        sides.exchange.passed_unread(1);
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Orderly);
        assert!(sides.exchange.is_idle());
        assert_eq!(sides.client(GET), (Forwarded::Waits, GET.to_owned()));
        assert_eq!(sides.server(OK), Ok(OK.to_owned()));
    }

    #[test]
    fn what_says_something_is_read() {
        for (request, response) in [
            (
                "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
                "HTTP/1.1 200 OK\r\n\r\nok",
            ),
            (
                "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
            ),
            (
                "HEAD / HTTP/1.1\r\nHost: b\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
            ),
            // The client still sends.
            (
                "POST / HTTP/1.1\r\nHost: b\r\nContent-Length: 5\r\n\r\nhe",
                "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n",
            ),
        ] {
            let mut sides = Sides::default();
            sides.client(request);
            sides.server(response).unwrap();
            assert_eq!(sides.exchange.unread(), 0, "{request} {response}");
        }
    }

    #[test]
    fn final_responses_tell_browsers_to_use_https() {
        let mut sides = Sides {
            hsts: Some("max-age=1"),
            ..Sides::default()
        };
        sides.client(GET);
        let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
        assert_eq!(sides.server(interim), Ok(interim.to_owned()));
        let told = OK.replace(" OK\r\n", " OK\r\nStrict-Transport-Security: max-age=1\r\n");
        assert_eq!(sides.server(OK), Ok(told));
        sides.client(GET);
        let own = OK.replace("Content", "Strict-Transport-Security: max-age=0\r\nContent");
        assert_eq!(sides.server(&own), Ok(own.clone()));
    }

    #[test]
    fn the_end_of_a_server_means_what_is_missing() {
        let mut sides = Sides::default();
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Orderly);
        sides.client(GET);
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Unanswered);
        sides.server("HTTP/1.1 103 Early Hints\r\n\r\n").unwrap();
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Truncated);
        sides
            .server("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok")
            .unwrap();
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Truncated);
        sides.server("!").unwrap();
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Orderly);

        let mut sides = Sides::default();
        sides.client(GET);
        sides.server("HTTP/1.1 200 OK\r\n\r\nok").unwrap();
        assert_eq!(sides.exchange.server_ends(), ServerEnd::Orderly);
    }

    #[test]
    fn a_client_goes_on_if_its_server_has_not_said_otherwise() {
        for (fields, goes_on) in [("", true), ("Connection: close\r\n", false)] {
            let mut sides = Sides::default();
            sides.client(GET);
            assert!(!sides.exchange.goes_on_without_server());
            assert!(sides.exchange.can_be_repeated());
            let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\n");
            sides.server(&head).unwrap();
            assert!(!sides.exchange.can_be_repeated());
            assert!(!sides.exchange.goes_on_without_server());
            sides.server("ok").unwrap();
            assert_eq!(sides.exchange.goes_on_without_server(), goes_on);
        }
        for request in [
            "POST / HTTP/1.1\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: b\r\nContent-Length: 1\r\n\r\na",
        ] {
            let mut sides = Sides::default();
            sides.client(request);
            assert!(!sides.exchange.can_be_repeated(), "{request}");
        }
    }

    #[test]
    fn another_protocol_may_follow() {
        let mut sides = Sides::default();
        sides.client(
            "GET / HTTP/1.1\r\nHost: b\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        );
        let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nframes";
        assert_eq!(sides.server(switch), Ok(switch.to_owned()));
        assert!(sides.exchange.is_tunnel() && !sides.exchange.is_idle());
        assert_eq!(
            sides.client("anything"),
            (Forwarded::More, "anything".to_owned())
        );
    }
}
