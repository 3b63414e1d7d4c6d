//! Sends the clients of a service that speaks HTTP to its HTTPS: each request is answered with a redirect
//! ([`reply`]), and no server is asked.

mod reply;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use self::reply::reply;
use crate::http::answer::{Answer, end};
use crate::http::asked::Protocol;

/// A client has to take the answers to what it has sent within this time.
const STALL: Duration = Duration::from_secs(60);
/// Room for what a client sends at once, bytes.
const PIECE: usize = 4 << 10;

baton_core::shared_counters! {
    /// Counts requests of services that redirect, for the metrics.
    pub struct Counters("redirect_") {
        /// Requests that were answered with a redirect to HTTPS.
        answered,
        /// Requests that were answered with an error, because nobody can know where to.
        refused,
    }
}

/// How the clients of one service are redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    /// The port of HTTPS at the same address.
    pub https_port: u16,
    /// The longest time that the head of a request may take, and that a connection may rest between two.
    pub head_timeout: Duration,
}

/// Serves one connection, as `redirect` says at each moment.
pub(crate) async fn serve(
    client: TcpStream,
    redirect: watch::Receiver<Redirect>,
    counters: Arc<Counters>,
) {
    // An error means that the client has broken off, or that its connection goes on at another data server.
    let _ = answer(client, &redirect, &counters).await;
}

/// Answers the requests of one connection, until it ends.
async fn answer(
    mut client: TcpStream,
    redirect: &watch::Receiver<Redirect>,
    counters: &Counters,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut text = Vec::new();
    let mut since = Instant::now();
    loop {
        let Redirect {
            https_port,
            head_timeout,
        } = *redirect.borrow();
        let (answers, is_last) = answers(&mut text, https_port, counters);
        if !answers.is_empty() {
            timeout(STALL, client.write_all(answers.as_bytes())).await??;
            since = Instant::now();
        }
        if is_last {
            return end(client).await;
        }
        text.reserve(PIECE);
        let rests = text.is_empty();
        match timeout_at(since + head_timeout, client.read_buf(&mut text)).await {
            Ok(Ok(0)) => return end(client).await,
            Ok(Ok(_)) if rests => since = Instant::now(),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) if rests => return end(client).await,
            Err(_) => return Answer::TooSlow.give(client, Protocol::Http).await,
        }
    }
}

/// Takes all requests off whose heads are whole. Returns the answers to them, and whether the connection ends with the
/// last one.
fn answers(text: &mut Vec<u8>, https_port: u16, counters: &Counters) -> (String, bool) {
    let mut answers = String::new();
    let mut taken = 0;
    let mut is_last = false;
    while !is_last && let Some(next) = reply(&text[taken..], https_port) {
        let counter = match next.is_redirect {
            true => &counters.answered,
            false => &counters.refused,
        };
        counter.fetch_add(1, Relaxed);
        taken += next.taken;
        is_last = next.is_last;
        answers.push_str(&next.text);
    }
    text.drain(..taken);
    (answers, is_last)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const GET: &str = "GET /a HTTP/1.1\r\nHost: b\r\n\r\n";
    /// No test takes this long.
    const LONG: Duration = Duration::from_secs(3600);

    /// A client that has said this before its connection is served, and the counters.
    async fn client(first: &str, head_timeout: Duration) -> (TcpStream, Arc<Counters>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(at).await.unwrap();
        client.write_all(first.as_bytes()).await.unwrap();
        let (served, _) = listener.accept().await.unwrap();
        let counters = Arc::new(Counters::default());
        let of_server = Arc::clone(&counters);
        tokio::spawn(async move {
            let redirect = watch::Sender::new(Redirect {
                https_port: 443,
                head_timeout,
            });
            serve(served, redirect.subscribe(), of_server).await;
        });
        (client, counters)
    }

    /// All that a client is told.
    async fn told(mut client: TcpStream) -> String {
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        told
    }

    #[tokio::test]
    async fn requests_of_a_connection_are_answered_in_turn() {
        let (mut client, counters) = client("", LONG).await;
        let mut told = vec![0; reply(GET.as_bytes(), 443).unwrap().text.len()];
        for count in 1..=3 {
            client.write_all(GET.as_bytes()).await.unwrap();
            client.read_exact(&mut told).await.unwrap();
            assert!(told.ends_with(b"Location: https://b/a\r\nContent-Length: 0\r\n\r\n"));
            assert_eq!(counters.answered.load(Relaxed), count);
        }
    }

    #[tokio::test]
    async fn requests_may_come_at_once_or_in_pieces() {
        let last = GET.replace("Host", "Connection: close\r\nHost");
        let text = [GET, GET, &last, GET].concat();
        for first in [text.len(), 0] {
            let (mut client, counters) = client(&text[..first], LONG).await;
            for byte in text[first..].bytes() {
                client.write_all(&[byte]).await.unwrap();
            }
            let told = told(client).await;
            assert_eq!(told.matches("HTTP/1.1 301 ").count(), 3, "{told}");
            assert!(told.ends_with("Connection: close\r\n\r\n"), "{told}");
            assert_eq!(counters.answered.load(Relaxed), 3);
        }
    }

    #[tokio::test]
    async fn a_head_must_end_in_time_and_a_connection_may_not_rest_for_ever() {
        let short = Duration::from_millis(1);
        let (half, _) = client(&GET[..20], short).await;
        assert!(told(half).await.starts_with("HTTP/1.1 408 "));
        let (silent, _) = client("", short).await;
        assert_eq!(told(silent).await, "");
    }

    #[tokio::test]
    async fn nothing_follows_an_error() {
        let (client, counters) = client("GET / HTTP/1.1\r\n\r\nGET", LONG).await;
        let told = told(client).await;
        assert!(told.starts_with("HTTP/1.1 400 ") && told.ends_with("400 Bad Request\n"));
        assert_eq!(counters.refused.load(Relaxed), 1);
    }
}
