//! The TCP connection to the runner, which is the TLS client.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, TcpStream};
use std::time::Duration;

use crate::options::Options;

/// The runner waits for fifteen seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection to the runner.
pub struct Client {
    stream: TcpStream,
    reads_at_most: usize,
    /// What has come and has not been taken.
    pub input: Vec<u8>,
    /// What is to be sent.
    pub output: Vec<u8>,
}

impl Client {
    pub fn connect(options: &Options) -> Result<Self, String> {
        let connect = || {
            let stream = TcpStream::connect((Ipv6Addr::LOCALHOST, options.port))
                .or_else(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, options.port)))?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = connect()
            .map_err(|error: io::Error| format!("no connection to the runner: {error}"))?;
        Ok(Self {
            stream,
            reads_at_most: if options.reads_single_bytes {
                1
            } else {
                1 << 14
            },
            input: Vec::new(),
            output: Vec::new(),
        })
    }

    /// Appends to the input what comes next. Returns whether the client has not ended.
    pub fn read(&mut self) -> Result<bool, String> {
        let mut bytes = vec![0; self.reads_at_most];
        match self.stream.read(&mut bytes) {
            Ok(length) => {
                self.input.extend(&bytes[..length]);
                Ok(length > 0)
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(format!("the runner cannot be read from: {error}")),
        }
    }

    /// Sends all of the output.
    pub fn flush(&mut self) -> Result<(), String> {
        self.flush_first(self.output.len())
    }

    /// Sends the first bytes of the output.
    pub fn flush_first(&mut self, length: usize) -> Result<(), String> {
        let sent = self.stream.write_all(&self.output[..length]);
        self.output.drain(..length);
        sent.map_err(|error| format!("the runner cannot be written to: {error}"))
    }

    /// Waits until the runner ends as well: a socket that is closed with something unread in it resets the connection,
    /// and the runner would not see the last alert.
    pub fn end(mut self) {
        if self.stream.shutdown(Shutdown::Write).is_ok() {
            while let Ok(1..) = self.stream.read(&mut [0; 4096]) {}
        }
    }
}
