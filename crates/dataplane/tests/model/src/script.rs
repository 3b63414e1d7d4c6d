//! What a client asks for on one connection, request by request.

use fastrand::Rng;

use crate::pool::{POOLS, Pool};

/// What a request is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Get,
    /// A body with a length.
    Post,
    /// A body in chunks.
    Chunks,
    /// A method that may have a body, and has none.
    Delete,
    /// It offers another protocol, and its server takes no notice of that.
    Upgrade,
}

#[derive(Clone, Debug)]
pub struct Asked {
    pub pool: Pool,
    /// Where it begins and ends in the stream.
    pub begin: usize,
    pub end: usize,
}

/// All that a client will ever say on a connection, if it is honest.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub text: Vec<u8>,
    pub requests: Vec<Asked>,
}

impl Script {
    pub fn random(random: &mut Rng, odd: bool) -> Self {
        let mut script = Self::default();
        for _ in 0..random.usize(2..=4) {
            let kind = match random.u8(..10) {
                0..5 => Kind::Get,
                5..7 => Kind::Post,
                7..8 => Kind::Chunks,
                8 if odd => Kind::Upgrade,
                _ => Kind::Delete,
            };
            let pool = POOLS[random.usize(..POOLS.len())];
            script.ask(kind, pool, &body(random));
        }
        script
    }

    fn ask(&mut self, kind: Kind, pool: Pool, body: &[u8]) {
        let begin = self.text.len();
        let path = pool.path();
        let host = "Host: h\r\n";
        let mut put = |text: &str| self.text.extend(text.as_bytes());
        match kind {
            Kind::Get => put(&format!("GET {path} HTTP/1.1\r\n{host}\r\n")),
            Kind::Delete => put(&format!("DELETE {path} HTTP/1.1\r\n{host}\r\n")),
            Kind::Upgrade => put(&format!(
                "GET {path} HTTP/1.1\r\n{host}Upgrade: h2c\r\n\r\n"
            )),
            Kind::Post => {
                let length = body.len();
                put(&format!(
                    "POST {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n"
                ));
            }
            Kind::Chunks => put(&format!(
                "POST {path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n"
            )),
        }
        match kind {
            Kind::Post => self.text.extend(body),
            Kind::Chunks => {
                for chunk in body.chunks(40) {
                    self.text
                        .extend(format!("{:x};x=y\r\n", chunk.len()).as_bytes());
                    self.text.extend(chunk);
                    self.text.extend(b"\r\n");
                }
                self.text.extend(b"0\r\nA: b\r\n\r\n");
            }
            _ => (),
        }
        self.requests.push(Asked {
            pool,
            begin,
            end: self.text.len(),
        });
    }

    /// The request that has this byte.
    pub fn at(&self, offset: usize) -> Option<usize> {
        self.requests
            .iter()
            .position(|request| (request.begin..request.end).contains(&offset))
    }
}

/// Mostly such as looks like a request for another pool.
fn body(random: &mut Rng) -> Vec<u8> {
    let mut body = match random.u8(..4) {
        0 => b"hello".to_vec(),
        1 => b"GET /a/ HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        2 => b"GET /b/ HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        _ => b"0\r\n\r\nGET /b/ HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
    };
    // Longer than a segment, now and then.
    if random.u8(..16) == 0 {
        body.resize(random.usize(1_200..2_600), b'.');
    }
    body
}
