//! How a server reads requests (RFC 9112), byte by byte. None of this code is taken from the programs.

/// The pool of a request with this target, as the routes of `native/kernel.c` say.
pub fn pool_of(target: &[u8]) -> u16 {
    match target {
        [b'/', b'b', ..] => 1,
        [b'/', b'c', ..] => 2,
        _ => 0,
    }
}

/// Whether this data server may answer requests of the pool.
pub fn may_answer(node: usize, pool: u16) -> bool {
    match pool {
        2 => node > 0,
        _ => usize::from(pool) == node,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In a head, of which these bytes have come, or before one.
    Head(Vec<u8>),
    /// In a body, of which so many bytes are still to come.
    Body(u64),
    ChunkSize(Vec<u8>),
    /// In a chunk, of which so many bytes are still to come.
    Chunk(u64),
    ChunkEnd,
    /// In a line behind the last chunk. So many bytes of the line have come, without its end.
    Trailer(u32),
}

#[derive(Clone, Debug)]
pub struct Reader {
    pub state: State,
    /// Whether each request that has come as a whole was one for HEAD.
    pub whole: Vec<bool>,
    is_head: bool,
    /// How many bytes of line ends have come in front of the head.
    leading: u32,
    /// The head that was read last.
    pub head: Head,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Head {
    pub bytes: u32,
    pub pool: u16,
    pub length: u64,
    pub is_chunked: bool,
    /// Whether servers may read the head in different ways. The agent answers such a request with an error.
    pub is_odd: bool,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            state: State::Head(Vec::new()),
            whole: Vec::new(),
            is_head: false,
            leading: 0,
            head: Head::default(),
        }
    }
}

impl Reader {
    /// The pool of the request whose head is coming, as soon as its target has come.
    pub fn coming(&self) -> Option<u16> {
        let State::Head(head) = &self.state else {
            return None;
        };
        let mut words = head.split(|&c| c == b' ');
        let (_, target) = (words.next()?, words.next()?);
        words.next()?;
        Some(pool_of(target))
    }

    /// Takes the next byte. Returns the pool of a request if its head ends with this byte.
    pub fn take(&mut self, byte: u8) -> Option<u16> {
        match &mut self.state {
            // Line ends in front of a request are passed over.
            State::Head(head) if head.is_empty() && matches!(byte, b'\r' | b'\n') => {
                self.leading += 1
            }
            State::Head(head) => {
                head.push(byte);
                // A line may end without a CR (RFC 9112, 2.2).
                if head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n") {
                    let head = std::mem::take(head);
                    return Some(self.end_head(&head));
                }
            }
            State::Body(left) => {
                *left -= 1;
                if *left == 0 {
                    self.end_request();
                }
            }
            State::ChunkSize(line) => {
                line.push(byte);
                if byte == b'\n' {
                    let digits = line.iter().take_while(|c| c.is_ascii_hexdigit());
                    let size = digits.fold(0, |size, &c| {
                        size << 4 | u64::from((c as char).to_digit(16).unwrap_or(0))
                    });
                    self.state = if size == 0 {
                        State::Trailer(0)
                    } else {
                        State::Chunk(size)
                    };
                }
            }
            State::Chunk(left) => {
                *left -= 1;
                if *left == 0 {
                    self.state = State::ChunkEnd;
                }
            }
            // Some servers take a LF alone for a line's end.
            State::ChunkEnd => {
                if byte == b'\n' {
                    self.state = State::ChunkSize(Vec::new());
                }
            }
            State::Trailer(bytes) => {
                if byte == b'\n' {
                    if *bytes == 0 {
                        self.end_request();
                    } else {
                        self.state = State::Trailer(0);
                    }
                } else if byte != b'\r' {
                    *bytes += 1;
                }
            }
        }
        None
    }

    fn end_head(&mut self, text: &[u8]) -> u16 {
        let mut lines = text.split(|&c| c == b'\n');
        let mut words = lines.next().unwrap_or_default().split(|&c| c == b' ');
        let (method, target) = (words.next(), words.next().unwrap_or_default());
        self.is_head = method == Some(b"HEAD");
        self.head = Head {
            bytes: self.leading + text.len() as u32,
            pool: pool_of(target),
            is_odd: !self.leading.is_multiple_of(2) || has_bare_cr(text) || !is_request_line(text),
            ..Head::default()
        };
        self.leading = 0;
        for line in lines {
            let Some(colon) = line.iter().position(|&c| c == b':') else {
                continue;
            };
            let value = String::from_utf8_lossy(&line[colon + 1..])
                .trim()
                .to_ascii_lowercase();
            match line[..colon].to_ascii_lowercase().as_slice() {
                b"content-length" => {
                    self.head.is_odd |= self.head.is_chunked || value.parse::<u64>().is_err();
                    self.head.length = value.parse().unwrap_or(0);
                }
                b"transfer-encoding" => {
                    self.head.is_odd |= self.head.length != 0 || value != "chunked";
                    self.head.is_chunked = value == "chunked";
                }
                _ => {}
            }
        }
        self.state = match self.head {
            Head {
                is_chunked: true, ..
            } => State::ChunkSize(Vec::new()),
            Head { length: 0, .. } => {
                self.end_request();
                return self.head.pool;
            }
            Head { length, .. } => State::Body(length),
        };
        self.head.pool
    }

    fn end_request(&mut self) {
        self.whole.push(self.is_head);
        self.state = State::Head(Vec::new());
    }
}

fn has_bare_cr(text: &[u8]) -> bool {
    text.windows(2)
        .any(|two| two[0] == b'\r' && two[1] != b'\n')
}

fn is_request_line(text: &[u8]) -> bool {
    let line = text.split(|&c| c == b'\n').next().unwrap_or_default();
    let words: Vec<_> = line.split(|&c| c == b' ').collect();
    matches!(words[..], [method, target, b"HTTP/1.1\r"] if !method.is_empty() && target.starts_with(b"/"))
}
