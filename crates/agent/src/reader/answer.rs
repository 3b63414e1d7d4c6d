//! What a client hears whose request no server gets.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::end_in_order;

/// So long a client may take to hear it, and to send more of what nobody reads.
const LINGERS: Duration = Duration::from_secs(5);
/// And so long, sending, until it ends: some send all of a body before they read.
const LINGERS_AT_MOST: Duration = Duration::from_secs(30);

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Servers do not understand it, or not all in the same way.
    Bad,
    /// Its head did not end in time.
    TooSlow,
    /// Its head is too long.
    TooLarge,
    /// Nobody answers for it.
    Nobody,
}

impl Answer {
    /// Status and reason (RFC 9110, section 15; 431: RFC 6585, section 5).
    fn status(self) -> &'static str {
        match self {
            Self::Bad => "400 Bad Request",
            Self::TooSlow => "408 Request Timeout",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Nobody => "503 Service Unavailable",
        }
    }

    fn text(self) -> String {
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

    /// Says so, and ends the connection.
    pub async fn give(self, mut client: TcpStream) -> io::Result<()> {
        let text = self.text();
        timeout(LINGERS, client.write_all(text.as_bytes())).await??;
        end(client).await
    }
}

/// Ends the connection in stages (RFC 9112, section 9.6): a RST could take an answer away again from a client that is still
/// sending.
pub(super) async fn end(mut client: TcpStream) -> io::Result<()> {
    SockRef::from(&client).shutdown(Shutdown::Write)?;
    // Small, as very many may have it at once.
    let mut nothing = [0; 4096];
    let reading = async {
        while timeout(LINGERS, client.read(&mut nothing)).await?? > 0 {}
        io::Result::Ok(())
    };
    timeout(LINGERS_AT_MOST, reading).await??;
    end_in_order(&client);
    Ok(())
}
