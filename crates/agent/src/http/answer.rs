//! The agent's own answers, for requests that no server gets.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::asked::Protocol;
use crate::client::{LINGERS, end_in_order, read_away};

/// A client that goes on sending has to end within this time: some send all of a body before they read.
const LINGERS_AT_MOST: Duration = Duration::from_secs(30);

/// Why the agent answers a request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Servers do not understand the request, or do not all understand it in the same way.
    Bad,
    /// The head of the request did not end in time.
    TooSlow,
    /// The head of the request is too long.
    TooLarge,
    /// No data server answers for the request.
    Nobody,
    /// A TLS client wants a server of a name that no route has.
    UnknownName,
}

impl Answer {
    /// The answer as a client of this protocol reads it. It may be empty.
    fn bytes(self, protocol: Protocol) -> Vec<u8> {
        match (self, protocol) {
            (answer, Protocol::Http) => answer.response().into_bytes(),
            // The client has said too little to be told anything.
            (Self::TooSlow, Protocol::Tls) => Vec::new(),
            (answer, Protocol::Tls) => fatal(answer.description()).to_vec(),
        }
    }

    /// Status code and reason phrase (RFC 9110, section 15; 431: RFC 6585, section 5).
    pub(crate) fn status(self) -> &'static str {
        match self {
            Self::Bad => "400 Bad Request",
            Self::TooSlow => "408 Request Timeout",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Nobody | Self::UnknownName => "503 Service Unavailable",
        }
    }

    /// The description in a TLS alert (RFC 8446, section 6.2; unrecognized_name: RFC 6066, section 3).
    fn description(self) -> u8 {
        match self {
            Self::Bad | Self::TooSlow => 50, // decode_error
            Self::TooLarge => 22,            // record_overflow
            Self::Nobody => 80,              // internal_error
            Self::UnknownName => 112,        // unrecognized_name
        }
    }

    /// The answer as a response of HTTP/1.
    pub(crate) fn response(self) -> String {
        let status = self.status();
        let length = status.len() + 1;
        let again = match self {
            Self::Nobody => "Retry-After: 1\r\n",
            _ => "",
        };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{again}Connection: close\r\n\r\n{status}\n"
        )
    }

    /// Sends this answer, and ends the connection.
    pub(crate) async fn give(self, mut client: TcpStream, protocol: Protocol) -> io::Result<()> {
        timeout(LINGERS, client.write_all(&self.bytes(protocol))).await??;
        end(client).await
    }
}

/// A TLS record with a fatal alert (RFC 8446, sections 5.1 and 6).
fn fatal(description: u8) -> [u8; 7] {
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    [ALERT, 3, 3, 0, 2, FATAL, description]
}

/// Ends the connection in stages (RFC 9112, section 9.6), because a RST could destroy the answer before a client that
/// is still sending has read it.
pub(crate) async fn end(mut client: TcpStream) -> io::Result<()> {
    SockRef::from(&client).shutdown(Shutdown::Write)?;
    read_away(&mut client, LINGERS_AT_MOST).await?;
    end_in_order(&client);
    Ok(())
}
