//! Plain TCP, as it is used by a program that knows the length of its messages.

#![allow(clippy::unwrap_used, reason = "a measurement that fails is over")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

pub struct Plain {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Plain {
    pub fn connect(server: SocketAddr, size: usize, nodelay: bool) -> Self {
        let stream = TcpStream::connect(server).unwrap();
        stream.set_nodelay(nodelay).unwrap();
        Self {
            stream,
            answer: vec![0; size],
        }
    }

    pub fn trip(&mut self, request: &[u8]) {
        self.stream.write_all(request).unwrap();
        self.stream.read_exact(&mut self.answer).unwrap();
    }
}
