use std::time::Duration;

use hyper::Version;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;

use super::super::super::arrivals::Arrivals;
use super::super::super::kinds::Kinds;
use super::super::super::local_server::LocalServer;
use super::super::super::settings::ServerAddress;
use super::super::client_stream::tests::certificate;
use super::*;

/// A service that this data server alone answers.
pub fn service() -> Arc<Service> {
    Arc::new(Service {
        acceptor: certificate().0,
        server: Arc::new(LocalServer::new(
            "web",
            ServerAddress::Port(1),
            0,
            Arc::default(),
        )),
        head_timeout: Duration::from_secs(60),
        kernel_tls: false,
        cluster: None,
        arrivals: Arrivals::default(),
        hsts: None,
        kinds: Kinds::default(),
        leave: watch::channel(()).1,
    })
}

/// A connection, and its server's side.
pub async fn server(service: &Arc<Service>, place: Place) -> (Server, DuplexStream) {
    let (near, far) = duplex(1 << 16);
    (Server::over(near, service, place).await.unwrap(), far)
}

/// Reads until what has come ends so.
pub async fn heard(server: &mut DuplexStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(server.read_u8().await.unwrap());
    }
    String::from_utf8(text).unwrap()
}

fn request(method: &str) -> (Parts, RequestBody) {
    let request = Request::builder().method(method).version(Version::HTTP_11);
    let request = request.uri("/a").header("host", "a").body(()).unwrap();
    (request.into_parts().0, Either::Left(Empty::new()))
}

async fn not_made() -> io::Result<Server> {
    Err(io::Error::other("a new connection was not to be made"))
}

#[tokio::test]
async fn a_connection_is_kept_for_the_same_place_and_settings() {
    let (servers, now) = (Servers::default(), service());
    let other = Place::Other([192, 0, 2, 12].into());
    for place in [Place::Here, other] {
        let (one, mut far) = server(&now, place).await;
        let answering = tokio::spawn(async move {
            for _ in 0..2 {
                heard(&mut far, "\r\n\r\n").await;
                let response = b"HTTP/1.1 204 No Content\r\n\r\n";
                far.write_all(response).await.unwrap();
            }
            far
        });
        servers.keep(one).await;
        let not_here = if place == other { Place::Here } else { other };
        assert!(servers.take(&now, not_here).is_none());
        for _ in 0..2 {
            let asked = servers.ask(&now, place, request("GET"), not_made()).await;
            let (response, one) = asked.unwrap();
            assert_eq!(response.status(), 204);
            servers.keep(one).await;
        }
        // A reload may have changed the server's port.
        assert!(servers.take(&service(), place).is_none());
        assert!(locked(&servers.kept).is_empty());
        let mut far = answering.await.unwrap();
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn a_request_goes_out_again_if_it_may_be_done_twice() {
    let now = service();
    for (method, is_repeated) in [("GET", true), ("DELETE", true), ("POST", false)] {
        let servers = Servers::default();
        let (stale, mut far) = server(&now, Place::Here).await;
        servers.keep(stale).await;
        tokio::spawn(async move {
            heard(&mut far, "\r\n\r\n").await;
            drop(far);
        });
        let (new, mut far) = server(&now, Place::Here).await;
        let answering = tokio::spawn(async move {
            let head = heard(&mut far, "\r\n\r\n").await;
            let response = b"HTTP/1.1 204 No Content\r\n\r\n";
            far.write_all(response).await.unwrap();
            head
        });
        let connecting = async { Ok(new) };
        let asked = servers.ask(&now, Place::Here, request(method), connecting);
        assert_eq!(asked.await.is_ok(), is_repeated, "{method}");
        if is_repeated {
            let head = answering.await.unwrap();
            assert!(head.starts_with(&format!("{method} /a HTTP/1.1\r\n")));
        }
    }
}

#[tokio::test]
async fn a_new_connection_that_ends_is_an_error() {
    let (servers, now) = (Servers::default(), service());
    let (new, mut far) = server(&now, Place::Here).await;
    tokio::spawn(async move {
        heard(&mut far, "\r\n\r\n").await;
        drop(far);
    });
    let connecting = async { Ok(new) };
    let asked = servers.ask(&now, Place::Here, request("GET"), connecting);
    assert!(asked.await.is_err());
}
