//! The HTTP/1.1 probe: one GET, and the status of its answer.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::Reason;

/// A GET request that is sent as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get(Vec<u8>);

/// Longest response header that is read.
const MAX_HEADER: usize = 16 * 1024;
const MAX_FIELDS: usize = 64;

impl Get {
    /// A GET of `path` from the server that clients know as `host`. Port 80 is left out of the Host header (RFC 9110,
    /// section 7.2). Returns `None` if the path would break the request line: it must begin with `/` and be visible
    /// ASCII.
    pub fn new(path: &str, host: SocketAddr) -> Option<Self> {
        if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let host = match (host.port(), host) {
            (80, SocketAddr::V4(v4)) => v4.ip().to_string(),
            (80, SocketAddr::V6(v6)) => format!("[{}]", v6.ip()),
            _ => host.to_string(),
        };
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: baton-health\r\n\
             Accept: */*\r\nConnection: close\r\n\r\n"
        );
        Some(Self(request.into_bytes()))
    }

    pub(super) async fn exchange(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ) -> Result<(), Reason> {
        stream
            .write_all(&self.0)
            .await
            .map_err(Reason::Connection)?;
        let mut answer = Vec::with_capacity(1024);
        loop {
            if let Some(status) = final_status(&mut answer)? {
                return if (200..400).contains(&status) {
                    Ok(())
                } else {
                    Err(Reason::Status(status))
                };
            }
            if answer.len() >= MAX_HEADER {
                return Err(Reason::NotHttp("its header does not end"));
            }
            if stream
                .read_buf(&mut answer)
                .await
                .map_err(Reason::Connection)?
                == 0
            {
                return Err(Reason::NotHttp("it ended before its header did"));
            }
        }
    }
}

/// The status of the answer, once its header is complete. Informational responses come before the real one and are
/// removed from `answer` (RFC 9110, section 15.2); 101 is final, because the request asked for no upgrade.
fn final_status(answer: &mut Vec<u8>) -> Result<Option<u16>, Reason> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let length = match response.parse(answer) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Reason::NotHttp("its header has too many fields"));
            }
            Err(_) => return Err(Reason::NotHttp("its header is malformed")),
        };
        match response.code {
            Some(100 | 102..200) => drop(answer.drain(..length)),
            Some(code) => return Ok(Some(code)),
            None => return Err(Reason::NotHttp("it has no status")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_request_byte_for_byte() {
        let text = |host: &str| {
            String::from_utf8(Get::new("/up?x=1", host.parse().unwrap()).unwrap().0).unwrap()
        };
        assert_eq!(
            text("10.77.0.100:80"),
            "GET /up?x=1 HTTP/1.1\r\nHost: 10.77.0.100\r\nUser-Agent: baton-health\r\n\
             Accept: */*\r\nConnection: close\r\n\r\n"
        );
        assert!(text("10.77.0.100:8080").contains("Host: 10.77.0.100:8080\r\n"));
        assert!(text("[fd77::100]:80").contains("Host: [fd77::100]\r\n"));
        assert!(text("[fd77::100]:81").contains("Host: [fd77::100]:81\r\n"));
    }

    #[test]
    fn paths_that_would_break_the_request() {
        let host = "10.0.0.1:80".parse().unwrap();
        for path in ["", "up", "/a b", "/\r\nX: y", "/ä"] {
            assert_eq!(Get::new(path, host), None, "{path:?}");
        }
    }

    #[test]
    fn statuses() {
        let status = |text: &str| final_status(&mut text.as_bytes().to_vec());
        assert!(matches!(
            status("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"),
            Ok(Some(200))
        ));
        assert!(matches!(status("HTTP/1.0 503 No\r\n\r\n"), Ok(Some(503))));
        assert!(matches!(
            status("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 204 N\r\n\r\n"),
            Ok(Some(204))
        ));
        assert!(matches!(status("HTTP/1.1 100 Continue\r\n\r\n"), Ok(None)));
        assert!(matches!(
            status("HTTP/1.1 101 Switching\r\n\r\n"),
            Ok(Some(101))
        ));
        assert!(matches!(status("HTTP/1.1 200 OK\r\nA: b\r\n"), Ok(None)));
        assert!(matches!(
            status("SSH-2.0-OpenSSH_9.2\r\n"),
            Err(Reason::NotHttp(_))
        ));
    }

    proptest! {
        #[test]
        fn whatever_comes(mut answer in proptest::collection::vec(any::<u8>(), 0..200)) {
            let before = answer.len();
            let _ = final_status(&mut answer);
            prop_assert!(answer.len() <= before);
        }
    }
}
