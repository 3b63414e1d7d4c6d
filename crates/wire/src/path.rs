//! Paths of requests, as servers read them: one normalised spelling for all targets that name the same resource.
//!
//! The rule is that of nginx with its default settings: `%` and two hexadecimal digits are the byte that they
//! mean, once; then several `/` in a row are one; then the segments `.` and `..` are resolved (RFC 3986, 5.2.4).
//! An encoded `/` or `.` counts as the character itself, an encoded `?`, `#` or `%` is a part of the path. A `..`
//! above the root, an encoded NUL, and a `%` without two digits are errors, as they are for servers.
//!
//! Letters, `\`, `;` and bytes beyond ASCII mean themselves.

use crate::{HashKey, PathHash};

/// A path in its normalised spelling: it begins with `/` and has no `//` and no segment `.` or `..`. Blanks, control
/// characters, `%`, `?` and `#` are percent-encoded in capitals, and nothing else is encoded. A path without any of
/// these characters is spelled as it is read.
///
/// The default value stands for no path; it is not the root either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(Vec<u8>);

/// Why servers refuse a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPath {
    /// It does not begin with `/`.
    #[error("it does not begin with /")]
    NotAbsolute,
    /// A `%` is not followed by two hexadecimal digits.
    #[error("a % is not followed by two hexadecimal digits")]
    Escape,
    /// It has a `%00`, or a NUL itself.
    #[error("it has a NUL")]
    Nul,
    /// It has a control character that is not encoded.
    #[error("it has a control character")]
    Control,
    /// It has more `..` than segments before them.
    #[error("it leads above the root")]
    AboveRoot,
}

impl Path {
    /// Reads a path, which ends before its query.
    ///
    /// # Errors
    /// [`BadPath`] if servers refuse the path.
    pub fn read(path: &[u8]) -> Result<Self, BadPath> {
        Self::resolve(path, true)
    }

    /// Reads the beginning of paths. A `.` or `..` at its end stays, because it may not be a whole segment.
    ///
    /// # Errors
    /// [`BadPath`] if servers refuse every path that begins in this way.
    pub fn read_prefix(path: &[u8]) -> Result<Self, BadPath> {
        Self::resolve(path, false)
    }

    /// The path of a file below the document root, from the names of its folders and its own name.
    pub fn of_names<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut spelled = Vec::new();
        for name in names {
            spelled.push(b'/');
            name.iter().for_each(|&byte| spell(byte, &mut spelled));
        }
        Self(spelled)
    }

    /// The path in its normalised spelling.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path without any encoding, which is what servers look up.
    pub fn decoded(&self) -> Vec<u8> {
        let mut decoded = Vec::with_capacity(self.0.len());
        let mut rest = &self.0[..];
        while let Some((&byte, behind)) = rest.split_first() {
            rest = behind;
            match (byte, behind) {
                (b'%', [high, low, behind @ ..]) => {
                    // Two digits follow, because this module wrote them.
                    decoded.push(digit(*high).unwrap_or(0) << 4 | digit(*low).unwrap_or(0));
                    rest = behind;
                }
                _ => decoded.push(byte),
            }
        }
        decoded
    }

    /// The hash that the CS program makes of a path that it reads itself: for a long path the hash of its beginning.
    /// `None` if there is no path.
    pub fn hash(&self, key: HashKey) -> Option<PathHash> {
        (!self.0.is_empty()).then(|| PathHash::of_beginning(key, &self.0))
    }

    fn resolve(path: &[u8], is_whole: bool) -> Result<Self, BadPath> {
        if path.first().copied() != Some(b'/') {
            // An encoded `/` at the beginning does not count for servers either.
            return Err(BadPath::NotAbsolute);
        }
        let read = decode(path)?;
        let mut spelled = Vec::with_capacity(path.len());
        let mut segments = read.split(|&byte| byte == b'/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            match segment {
                b"." | b".." if is_last && !is_whole => {
                    spelled.push(b'/');
                    spelled.extend(segment);
                }
                // The next segment, or the end of the path, writes its own `/`.
                b"" | b"." if !is_last => {}
                b".." => {
                    let parent = spelled.iter().rposition(|&byte| byte == b'/');
                    spelled.truncate(parent.ok_or(BadPath::AboveRoot)?);
                    if is_last {
                        spelled.push(b'/');
                    }
                }
                b"" | b"." => spelled.push(b'/'),
                _ => {
                    spelled.push(b'/');
                    segment.iter().for_each(|&byte| spell(byte, &mut spelled));
                }
            }
        }
        Ok(Self(spelled))
    }
}

/// Decodes a path to the bytes that it stands for.
fn decode(path: &[u8]) -> Result<Vec<u8>, BadPath> {
    let mut read = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let meant = match byte {
            b'%' => {
                let [high, low, behind @ ..] = behind else {
                    return Err(BadPath::Escape);
                };
                rest = behind;
                digit(*high).ok_or(BadPath::Escape)? << 4 | digit(*low).ok_or(BadPath::Escape)?
            }
            0 => 0,
            0x01..=0x1f | 0x7f => return Err(BadPath::Control),
            _ => byte,
        };
        if meant == 0 {
            return Err(BadPath::Nul);
        }
        read.push(meant);
    }
    Ok(read)
}

fn digit(byte: u8) -> Option<u8> {
    // At most 15.
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn spell(byte: u8, spelled: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    match byte {
        0..=b' ' | b'%' | b'?' | b'#' | 0x7f => {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            spelled.extend([b'%', DIGITS[high], DIGITS[low]]);
        }
        _ => spelled.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<&str, BadPath>) {
        let read = Path::read(path.as_bytes());
        let spelled = read.map(|path| String::from_utf8(path.0).unwrap());
        assert_eq!(spelled, expected.map(str::to_owned), "{path}");
    }

    #[test]
    fn one_spelling_of_each() {
        for (path, spelled) in [
            ("/", "/"),
            ("/ds1", "/ds1"),
            ("//ds1/", "/ds1/"),
            ("/./ds1/", "/ds1/"),
            ("/x/../ds1/", "/ds1/"),
            ("/%64s1/", "/ds1/"),
            ("/ds1%2fa", "/ds1/a"),
            ("/ds2/../ds1/", "/ds1/"),
            ("/ds1/..", "/"),
            ("/ds1/.", "/ds1/"),
            ("/ds1/%2e%2E/", "/"),
            ("/a/%2e%2e%2fb", "/b"),
            ("/a//../b", "/b"),
            ("/a/...", "/a/..."),
            ("/.well-known/x", "/.well-known/x"),
            ("/a.", "/a."),
            ("/a/..b/c..", "/a/..b/c.."),
            ("/a%3fb%23c%25d%20e%0a", "/a%3Fb%23c%25d%20e%0A"),
            ("/%252e%252e/", "/%252e%252e/"),
            ("/%e9\\;x=1", "/\u{e9}\\;x=1"),
            ("/A%41", "/AA"),
        ] {
            let read = Path::read(path.as_bytes()).unwrap();
            let expected: Vec<u8> = (spelled.chars())
                .flat_map(|c| match c {
                    '\u{e9}' => vec![0xe9],
                    c => c.to_string().into_bytes(),
                })
                .collect();
            assert_eq!(read.as_bytes(), expected, "{path}");
        }
    }

    #[test]
    fn what_servers_refuse() {
        for path in ["/..", "/../ds1/", "/a/../../b", "/%2e%2e", "/./..", "//../"] {
            check(path, Err(BadPath::AboveRoot));
        }
        for path in ["/%", "/%6", "/%6g", "/%%36", "/a%/"] {
            check(path, Err(BadPath::Escape));
        }
        for path in ["/%00", "/a\0"] {
            check(path, Err(BadPath::Nul));
        }
        for path in ["/a\tb", "/\r", "/\u{7f}"] {
            check(path, Err(BadPath::Control));
        }
        for path in ["", "a", "%2fa", "*"] {
            check(path, Err(BadPath::NotAbsolute));
        }
    }

    #[test]
    fn a_prefix_may_end_in_the_middle_of_a_segment() {
        for (path, spelled) in [
            ("/a/.", "/a/."),
            ("/a/..", "/a/.."),
            ("/a//./%62", "/a/b"),
            ("/a/../b/", "/b/"),
        ] {
            let read = Path::read_prefix(path.as_bytes()).unwrap();
            assert_eq!(read.as_bytes(), spelled.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_file_has_the_path_by_which_clients_ask_for_it() {
        let of = |names: &[&str]| Path::of_names(names.iter().map(|name| name.as_bytes()));
        for (names, path) in [
            (&["1m"][..], "/1m"),
            (&["films", "a long one.webm"], "/films/a%20long%20one.webm"),
            (
                &["100%", "ä?#\"<>`{}"],
                "/100%25/%C3%A4%3F%23%22%3C%3E%60%7B%7D",
            ),
            (&["-._~!$&'()*+,;=:@[]|\\"], "/-._~!$&'()*+,;=:@[]|\\"),
            (&[".hidden", "..."], "/.hidden/..."),
        ] {
            assert_eq!(Path::read(path.as_bytes()), Ok(of(names)), "{path}");
        }
    }

    #[test]
    fn decoded_again() {
        let path = Path::read(b"/a%20%3f%25%41/%ff").unwrap();
        assert_eq!(path.decoded(), b"/a ?%A/\xff");
    }
}
