//! The head of a request, as far as its first segment holds it.

use httparse::{EMPTY_HEADER, Status, parse_headers};

/// The shortest header line is `a:` and its end, the longest segment that is judged has 2 KB.
const MOST_LINES: usize = 512;

/// What can be made out. Of a header that does not end here, the lines that do; of one that is no header,
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: Vec<u8>,
    target: Vec<u8>,
    /// Whether the request line ends here, and with it the target.
    is_whole: bool,
    headers: Vec<(String, Vec<u8>)>,
}

impl Request {
    /// Reads the first bytes of a connection or of a further request on it; `None` if they begin none.
    pub fn read(text: &[u8]) -> Option<Self> {
        let (line, rest) = match text.iter().position(|&byte| byte == b'\n') {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        };
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let method = words.next()?;
        let target = words.next()?;
        if method.is_empty() || !method.iter().all(u8::is_ascii_uppercase) || target.is_empty() {
            return None;
        }
        Some(Self {
            method: method.to_owned(),
            target: target.trim_ascii_end().to_owned(),
            is_whole: rest.is_some() || words.next().is_some(),
            headers: rest.map(read_headers).unwrap_or_default(),
        })
    }

    /// Its method.
    pub fn method(&self) -> &[u8] {
        &self.method
    }

    /// Its target, which may go on.
    pub fn target(&self) -> &[u8] {
        &self.target
    }

    /// The target up to its query, if all of that is here.
    pub fn path(&self) -> Option<&[u8]> {
        match self.target.iter().position(|&byte| byte == b'?') {
            Some(end) => Some(&self.target[..end]),
            None => self.is_whole.then_some(&self.target),
        }
    }

    /// The host, in lower case and without its port; nothing if none is named. Of several the last, as
    /// the program has it: an error that is for the server to tell.
    pub fn host(&self) -> String {
        let named = self.headers("host").last().unwrap_or_default();
        let ends = |byte: &u8| *byte == b':' || *byte <= b' ';
        let end = named.iter().position(ends).unwrap_or(named.len());
        String::from_utf8_lossy(&named[..end]).to_ascii_lowercase()
    }

    /// The values of the header lines with this name.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = move |header: &&(String, Vec<u8>)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().filter(named).map(|(_, value)| &**value)
    }

    /// The values of the cookies with this name.
    pub fn cookies(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let lines = self.headers("cookie");
        lines.flat_map(move |line| named(line, b';', name))
    }

    /// The values of the parameters with this name, if the query is here to its end.
    pub fn queries(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let begin = self.target.iter().position(|&byte| byte == b'?');
        let query = begin
            .filter(|_| self.is_whole)
            .map(|at| &self.target[at + 1..]);
        query
            .into_iter()
            .flat_map(move |query| named(query, b'&', name))
    }
}

/// The values of `name` in a list of `name=value`; nothing where there is no `=`.
fn named<'a>(list: &'a [u8], separator: u8, name: &str) -> impl Iterator<Item = &'a [u8]> {
    list.split(move |&byte| byte == separator)
        .filter_map(move |pair| {
            let pair = pair.trim_ascii();
            let end = pair.iter().position(|&byte| byte == b'=');
            let (found, value) = match end {
                Some(end) => (&pair[..end], &pair[end + 1..]),
                None => (pair, &[][..]),
            };
            (found == name.as_bytes()).then_some(value)
        })
}

/// The lines that are here whole, up to the empty one.
fn read_headers(rest: &[u8]) -> Vec<(String, Vec<u8>)> {
    let whole = rest.iter().rposition(|&byte| byte == b'\n');
    let lines = &rest[..whole.map_or(0, |last| last + 1)];
    let ended = [lines, b"\r\n"].concat();
    let mut headers = vec![EMPTY_HEADER; MOST_LINES];
    match parse_headers(&ended, &mut headers) {
        Ok(Status::Complete((_, headers))) => headers
            .iter()
            .map(|header| (header.name.to_owned(), header.value.to_owned()))
            .collect(),
        _ => Vec::new(),
    }
}
