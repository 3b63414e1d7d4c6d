//! HTTP/1.1 as a server reads it that takes no notice of what it need not: one request behind the other.

use crate::pool::Pool;

/// A request in a stream of bytes; offsets in that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub begin: usize,
    /// Whose it is, once its path has come.
    pub pool: Option<Pool>,
    /// Where its head ends, once that has come.
    pub head: Option<usize>,
    /// Where it ends, once that is known.
    pub end: Option<usize>,
}

/// The requests that have begun in the text. What is behind one whose end is not known yet is of that.
pub fn requests(text: &[u8]) -> Vec<Request> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let request = request(text, at);
        let end = request.end;
        found.push(request);
        match end {
            Some(end) => at = end,
            None => break,
        }
    }
    found
}

fn request(text: &[u8], begin: usize) -> Request {
    let mut request = Request {
        begin,
        pool: path(&text[begin..]).map(Pool::of_path),
        head: None,
        end: None,
    };
    let Some(head) = find(&text[begin..], b"\r\n\r\n").map(|at| begin + at + 4) else {
        return request;
    };
    request.head = Some(head);
    let lines = &text[begin..head];
    request.end = if is_chunked(lines) {
        chunks_end(text, head)
    } else {
        Some(head + length(lines))
    };
    request
}

/// What is between the first two blanks.
fn path(text: &[u8]) -> Option<&[u8]> {
    let mut words = text.split(|&byte| byte == b' ');
    let (_, path) = (words.next()?, words.next()?);
    words.next().map(|_| path)
}

/// Whether the head says that the body says itself where it ends.
pub fn is_chunked(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    lines.any(|line| {
        line.trim_ascii()
            .eq_ignore_ascii_case(b"transfer-encoding: chunked")
    })
}

fn length(head: &[u8]) -> usize {
    const NAME: &[u8] = b"content-length:";
    head.split(|&byte| byte == b'\n')
        .filter(|line| line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME))
        .find_map(|line| {
            let digits = line[NAME.len()..].trim_ascii();
            std::str::from_utf8(digits).ok()?.parse().ok()
        })
        .unwrap_or(0)
}

/// Where the chunked body ends that begins there, if it is all here.
fn chunks_end(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let line = find(text.get(at..)?, b"\r\n")?;
        let digits = text[at..at + line].split(|&byte| byte == b';').next()?;
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?.trim(), 16).ok()?;
        at += line + 2;
        if size > 0 {
            at += size + 2;
            continue;
        }
        // Trailers, up to an empty line.
        loop {
            let line = find(text.get(at..)?, b"\r\n")?;
            at += line + 2;
            if line == 0 {
                return Some(at);
            }
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|here| here == what)
}
