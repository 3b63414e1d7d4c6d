//! A response for a client that speaks HTTP/2: a server's, or the agent's own. No waiting on servers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

use crate::http::answer::Answer;

/// The body of a response.
pub(super) type ResponseBody = Either<Full<Bytes>, ServersBody>;

/// A piece of a server's body.
pub(super) enum Piece {
    Frame(Frame<Bytes>),
    /// The body has ended, and nothing is missing.
    End,
}

/// The body of a server's response, which another task reads. It ends in order only if that has said so; otherwise the
/// stream is reset, and its client takes no part of the body for all of it.
pub(super) struct ServersBody(pub mpsc::Receiver<Piece>);

impl Body for ServersBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|piece| match piece {
            Some(Piece::Frame(frame)) => Some(Ok(frame)),
            Some(Piece::End) => None,
            None => Some(Err(io::ErrorKind::UnexpectedEof.into())),
        })
    }
}

/// The agent's own answer. A response to HEAD has no body.
pub(super) fn own(answer: Answer, to_head: bool) -> Response<ResponseBody> {
    let status = answer.status();
    let text = if to_head {
        Bytes::new()
    } else {
        format!("{status}\n").into()
    };
    let mut response = Response::new(Either::Left(Full::new(text)));
    let code = status.as_bytes().get(..3).unwrap_or_default();
    *response.status_mut() = StatusCode::from_bytes(code).unwrap_or(StatusCode::BAD_REQUEST);
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if answer == Answer::Nobody {
        fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn an_answer_says_what_it_says_by_http_1() {
        for (answer, code, again) in [
            (Answer::Bad, 400, false),
            (Answer::TooLarge, 431, false),
            (Answer::Nobody, 503, true),
        ] {
            let response = own(answer, false);
            assert_eq!(response.status(), code);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), again);
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert!(body.starts_with(code.to_string().as_bytes()));
            assert!(own(answer, true).body().is_end_stream());
        }
    }

    #[tokio::test]
    async fn a_body_ends_only_if_its_server_has_ended_it() {
        for ends in [true, false] {
            let (pieces, body) = mpsc::channel(2);
            let data = Frame::data(Bytes::from_static(b"a"));
            pieces.try_send(Piece::Frame(data)).ok().unwrap();
            if ends {
                pieces.try_send(Piece::End).ok().unwrap();
            }
            drop(pieces);
            let all = ServersBody(body).collect().await;
            assert_eq!(all.ok().map(|all| all.to_bytes()), ends.then(|| "a".into()));
        }
    }
}
