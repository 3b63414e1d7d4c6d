//! Streams of a client in memory. The servers are at the ends of connections that were kept.

use std::convert::Infallible;
use std::net::SocketAddrV4;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::Frame;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::super::builder;
use super::super::servers::tests::{heard, server, service};
use super::*;

/// A client, and what serves it.
struct Client {
    requests: SendRequest<ResponseBody>,
    streams: Arc<Streams>,
}

impl Client {
    async fn new() -> Self {
        // The connection goes on with the settings that it has when nobody can change them any more.
        let (_, services) = watch::channel(service());
        let ends = Ends {
            client: SocketAddrV4::new([127, 0, 0, 1].into(), 40000),
            cluster: SocketAddrV4::new([127, 0, 0, 1].into(), 443),
        };
        let streams = Arc::new(Streams::new(services, Arc::default(), ends));
        let answering = Arc::clone(&streams);
        let answer = service_fn(move |request| {
            let answering = Arc::clone(&answering).answer(request);
            async { Ok::<_, Infallible>(answering.await) }
        });
        let (near, far) = duplex(1 << 16);
        tokio::spawn(builder().serve_connection(TokioIo::new(far), answer));
        let (requests, connection) = handshake(TokioExecutor::new(), TokioIo::new(near))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self { requests, streams }
    }

    /// The side of a server that waits for requests.
    async fn server(&self) -> DuplexStream {
        let service = self.streams.services.borrow().clone();
        let (server, far) = server(&service, Place::Here).await;
        self.streams.servers.keep(server).await;
        far
    }

    /// Sends a request with this body, and returns the response.
    async fn send(&mut self, method: &str, body: Vec<Piece>) -> hyper::Result<Response<Incoming>> {
        let (pieces, body_pieces) = mpsc::channel(10);
        let nothing = body.is_empty();
        for piece in body {
            pieces.try_send(piece).ok().unwrap();
        }
        let body = if nothing {
            Either::Left(Full::default())
        } else {
            Either::Right(ServersBody(body_pieces))
        };
        let request = Request::builder().method(method).uri("https://a.example/a");
        let request = request.header("trailer", "x-sum").body(body).unwrap();
        self.requests.send_request(request).await
    }
}

fn data(text: &'static str) -> Piece {
    Piece::Frame(Frame::data(Bytes::from_static(text.as_bytes())))
}

fn trailers() -> Piece {
    let sum = HeaderMap::from_iter([("x-sum".parse().unwrap(), "5".parse().unwrap())]);
    Piece::Frame(Frame::trailers(sum))
}

#[tokio::test]
async fn a_request_and_its_response_are_passed_on() {
    let mut client = Client::new().await;
    let mut server = client.server().await;
    let answering = tokio::spawn(async move {
        let head = heard(&mut server, "\r\n\r\n").await;
        let body = heard(&mut server, "0\r\nx-sum: 5\r\n\r\n").await;
        let response = "HTTP/1.1 200 OK\r\nConnection: x-hop\r\nX-Hop: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                        5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n";
        server.write_all(response.as_bytes()).await.unwrap();
        // The next request comes by the same connection.
        let next = heard(&mut server, "\r\n\r\n").await;
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        server.write_all(response).await.unwrap();
        (head, body, next)
    });
    let sent = vec![data("he"), data("llo"), trailers(), Piece::End];
    let response = client.send("POST", sent).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers().is_empty(), "{response:?}");
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-sum"], "7");
    assert_eq!(body.to_bytes(), "hello");
    let streams = Arc::clone(&client.streams);
    while streams.are_open() {
        tokio::task::yield_now().await;
    }

    let response = client.send("HEAD", Vec::new()).await.unwrap();
    assert_eq!(response.headers()["content-length"], "5");
    let nothing = response.into_body().collect().await.unwrap();
    assert!(nothing.to_bytes().is_empty());
    let (head, body, next) = answering.await.unwrap();
    assert!(head.starts_with("POST /a HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: a.example\r\n"), "{head}");
    assert_eq!(body, "2\r\nhe\r\n3\r\nllo\r\n0\r\nx-sum: 5\r\n\r\n");
    assert!(next.starts_with("HEAD /a HTTP/1.1\r\n"), "{next}");
    assert_eq!(streams.counters.requests.load(Relaxed), 2);
}

#[tokio::test]
async fn a_part_of_a_response_is_never_all_of_it() {
    for part in [
        "Content-Length: 10\r\n\r\nhello",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nX\r\n",
    ] {
        let mut client = Client::new().await;
        let mut server = client.server().await;
        tokio::spawn(async move {
            heard(&mut server, "\r\n\r\n").await;
            let response = format!("HTTP/1.1 200 OK\r\n{part}");
            server.write_all(response.as_bytes()).await.unwrap();
        });
        let response = client.send("GET", Vec::new()).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await;
        let error = format!("{:?}", body.unwrap_err());
        assert!(error.contains("INTERNAL_ERROR"), "{part:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_answered_for() {
    for said in [
        "",
        "HTTP/1.1 2",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        let mut client = Client::new().await;
        let mut server = client.server().await;
        tokio::spawn(async move {
            heard(&mut server, "\r\n\r\n").await;
            server.write_all(said.as_bytes()).await.unwrap();
        });
        let response = client.send("POST", Vec::new()).await.unwrap();
        assert_eq!(response.status(), 503, "{said:?}");
        assert_eq!(client.streams.counters.answered.load(Relaxed), 1);
    }
}

#[tokio::test]
async fn a_client_that_resets_a_stream_ends_the_servers_connection() {
    for begins_to_answer in [false, true] {
        let mut client = Client::new().await;
        let mut server = client.server().await;
        let asking = client.send("GET", Vec::new());
        if begins_to_answer {
            let answering = async {
                heard(&mut server, "\r\n\r\n").await;
                let response = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
                server.write_all(response).await.unwrap();
            };
            let (response, ()) = tokio::join!(asking, answering);
            drop(response.unwrap());
        } else {
            tokio::select! {
                _ = asking => panic!("nobody answers"),
                _ = heard(&mut server, "\r\n\r\n") => (),
            }
        }
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn streams_end_with_their_clients_connection() {
    let mut client = Client::new().await;
    let (mut first, mut second) = (client.server().await, client.server().await);
    let asking = client.send("GET", Vec::new());
    let answering = async {
        heard(&mut second, "\r\n\r\n").await;
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
        second.write_all(response).await.unwrap();
    };
    let (response, ()) = tokio::join!(asking, answering);
    let streams = Arc::clone(&client.streams);
    assert!(streams.are_open());
    drop((client, response));
    assert_eq!(second.read(&mut [0]).await.unwrap(), 0);
    while streams.are_open() {
        tokio::task::yield_now().await;
    }
    drop(streams);
    assert_eq!(first.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_servers_could_read_differently_reaches_none() {
    let mut client = Client::new().await;
    let mut server = client.server().await;
    for uri in ["https://user@a/", "https://a/%00"] {
        let request = Request::builder()
            .uri(uri)
            .body(Either::Left(Full::default()));
        let response = client
            .requests
            .send_request(request.unwrap())
            .await
            .unwrap();
        assert_eq!(response.status(), 400, "{uri}");
    }
    drop(client);
    assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
}
