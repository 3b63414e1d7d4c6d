//! What a client asks for, one request behind the other, and where each request really begins and ends.

use fastrand::Rng;

/// The number of pools. Requests of the first pool may be answered by the first data server, those of the second by
/// the second, and those of the third by the second and the third.
pub const POOLS: u16 = 3;

#[derive(Clone, Debug)]
pub struct Request {
    pub kind: Kind,
    pub pool: u16,
    /// The length in bytes of the value of a header line that means nothing.
    pub padding: u16,
}

#[derive(Clone, Debug)]
pub enum Kind {
    Get,
    Head,
    /// A request with a body of so many bytes.
    Post(u16),
    /// A request with a body in chunks of these sizes.
    Chunked(Vec<u16>),
}

/// Where a request is in the client's stream, in bytes from its beginning.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub begin: u32,
    pub head_end: u32,
    pub end: u32,
    pub is_chunked: bool,
}

impl Request {
    pub fn random(rng: &mut Rng) -> Self {
        let kind = match rng.u8(..20) {
            0..8 => Kind::Get,
            8 => Kind::Head,
            9..16 => Kind::Post(if rng.bool() {
                rng.u16(..40)
            } else {
                rng.u16(..4000)
            }),
            _ => Kind::Chunked((0..rng.u8(..4)).map(|_| rng.u16(1..200)).collect()),
        };
        Self {
            kind,
            pool: rng.u16(..POOLS),
            padding: if rng.u8(..4) == 0 {
                rng.u16(..2000)
            } else {
                rng.u16(..20)
            },
        }
    }

    /// Adds the request to the stream.
    fn write(&self, stream: &mut Vec<u8>) -> Extent {
        let begin = stream.len() as u32;
        let path = ["/a", "/b/x", "/c/y/z"][usize::from(self.pool)];
        let (method, length) = match &self.kind {
            Kind::Get => ("GET", String::new()),
            Kind::Head => ("HEAD", String::new()),
            Kind::Post(bytes) => ("POST", format!("Content-Length: {bytes}\r\n")),
            Kind::Chunked(_) => ("PUT", "Transfer-Encoding: chunked\r\n".into()),
        };
        let padding = "p".repeat(usize::from(self.padding));
        stream.extend(
            format!("{method} {path} HTTP/1.1\r\nHost: h\r\n{length}X: {padding}\r\n\r\n").bytes(),
        );
        let head_end = stream.len() as u32;
        match &self.kind {
            Kind::Get | Kind::Head => {}
            Kind::Post(bytes) => stream.extend((0..*bytes).map(body_byte)),
            Kind::Chunked(sizes) => {
                for &size in sizes {
                    stream.extend(format!("{size:x}\r\n").bytes());
                    stream.extend((0..size).map(body_byte));
                    stream.extend(b"\r\n");
                }
                stream.extend(b"0\r\n\r\n");
            }
        }
        Extent {
            begin,
            head_end,
            end: stream.len() as u32,
            is_chunked: matches!(self.kind, Kind::Chunked(_)),
        }
    }
}

/// Bodies look like requests of more than one pool, so that a program that takes a part of a body for a request is
/// found out.
fn body_byte(at: u16) -> u8 {
    const TEXT: &[u8] =
        b"GET /b HTTP/1.1\r\nHost: h\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n0\r\n\r\n";
    TEXT[usize::from(at) % TEXT.len()]
}

#[derive(Clone, Debug, Default)]
pub struct Stream {
    pub bytes: Vec<u8>,
    pub requests: Vec<Extent>,
}

impl Stream {
    pub fn of(requests: &[Request]) -> Self {
        let mut bytes = Vec::new();
        let requests = requests.iter().map(|one| one.write(&mut bytes)).collect();
        Self { bytes, requests }
    }

    /// Returns so many bytes of the stream from `at` on, or what there is of them.
    pub fn part(&self, at: u32, bytes: u32) -> Vec<u8> {
        let at = (at as usize).min(self.bytes.len());
        let end = (at + bytes as usize).min(self.bytes.len());
        self.bytes[at..end].to_vec()
    }

    pub fn len(&self) -> u32 {
        self.bytes.len() as u32
    }
}
