//! Reads what a TLS client says first (ClientHello): the name of the server that it wants, and the protocols that it
//! speaks inside TLS.
//!
//! Nothing else is read or judged. The server judges the ClientHello, and may know more of TLS than this file.

/// What routes see of a ClientHello.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientHello {
    name: String,
    protocols: Vec<Vec<u8>>,
}

/// Content type of records that carry handshake messages (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// Upper half of the version in each record: TLS is version 3 of SSL.
const VERSION: u8 = 3;
/// The most bytes of a record's content.
const RECORD_MOST: usize = 1 << 14;
/// Type of the handshake message (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;
/// Extension with the server's name (RFC 6066, section 3), and the type of a host's name in it.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;
/// Extension with protocols (RFC 7301, section 3.1).
const ALPN: u16 = 16;

impl ClientHello {
    /// A ClientHello that names this server and these protocols.
    pub fn new<'a>(name: &str, protocols: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self {
            name: name.trim_end_matches('.').to_ascii_lowercase(),
            protocols: protocols.into_iter().map(<[u8]>::to_owned).collect(),
        }
    }

    /// Reads the first bytes of a connection. `None` if the ClientHello does not end in them. It may take several TLS
    /// records, and more may follow it. What begins no TLS connection counts as a ClientHello that says nothing.
    pub fn read(text: &[u8]) -> Option<Self> {
        let Handshake { message, is_over } = Handshake::in_records(text);
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Some(Self::default());
        }
        match first_body(&message) {
            Some(body) => Some(Self::read_body(Reader(body)).unwrap_or_default()),
            None => is_over.then(Self::default),
        }
    }

    /// Reads the message's body (RFC 8446, section 4.1.2).
    fn read_body(mut body: Reader<'_>) -> Option<Self> {
        body.take(2 + 32)?; // version and random
        body.sized(1)?; // session
        body.sized(2)?; // cipher suites
        body.sized(1)?; // compression
        let (mut name, mut protocols) = ("".into(), Vec::new());
        if !body.0.is_empty() {
            let mut extensions = Reader(body.sized(2)?);
            while !extensions.0.is_empty() {
                let kind = extensions.take(2)?;
                let content = Reader(extensions.sized(2)?);
                match u16::from_be_bytes([kind[0], kind[1]]) {
                    SERVER_NAME => name = host_name(content)?,
                    // A list that is wrong offers nothing.
                    ALPN => protocols = names(content).unwrap_or_default(),
                    _ => {}
                }
            }
        }
        Some(Self::new(&name, protocols))
    }

    /// The name of the server that the client wants (SNI), in lower case and without a dot at its end. Empty if it says
    /// none. With ECH this is the outer name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The protocols that the client offers, as `h2` and `http/1.1`.
    pub fn protocols(&self) -> impl Iterator<Item = &[u8]> {
        self.protocols.iter().map(Vec::as_slice)
    }
}

/// The body of the first message; `None` if it is not all here.
fn first_body(message: &[u8]) -> Option<&[u8]> {
    Reader(message.get(1..)?).sized(3)
}

/// What has come of the handshake.
struct Handshake {
    /// The first message, as far as it is here. What follows it in its last record may be here, too.
    message: Vec<u8>,
    /// Whether the message is not whole, and what follows is no record with more of it.
    is_over: bool,
}

impl Handshake {
    /// Reads records until the first message is whole. What follows it is not looked at.
    fn in_records(text: &[u8]) -> Self {
        let (mut message, mut rest, mut is_over) = (Vec::new(), Reader(text), false);
        while let Some(kind) = rest.0.first()
            && first_body(&message).is_none()
        {
            let is_version = rest.0.get(1).is_none_or(|version| *version == VERSION);
            is_over = *kind != HANDSHAKE || !is_version;
            let header = if is_over { None } else { rest.take(5) };
            let Some([_, _, _, high, low]) = header else {
                break;
            };
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            is_over = !(1..=RECORD_MOST).contains(&length);
            if is_over {
                break;
            }
            message.extend(rest.up_to(length));
        }
        Self { message, is_over }
    }
}

/// The first host's name in the extension `server_name`; empty if there is none.
fn host_name(mut content: Reader<'_>) -> Option<std::borrow::Cow<'_, str>> {
    let mut names = Reader(content.sized(2)?);
    while !names.0.is_empty() {
        let kind = names.take(1)?[0];
        let name = names.sized(2)?;
        if kind == HOST_NAME {
            return Some(String::from_utf8_lossy(name));
        }
    }
    Some("".into())
}

/// The names in the extension for protocols.
fn names(mut content: Reader<'_>) -> Option<Vec<&[u8]>> {
    let mut list = Reader(content.sized(2)?);
    let mut names = Vec::new();
    while !list.0.is_empty() {
        names.push(list.sized(1)?);
    }
    Some(names)
}

/// Bytes that are read from their beginning.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes as many bytes, or all if there are fewer.
    fn up_to(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes bytes that have their length in front, in `prefix` bytes.
    fn sized(&mut self, prefix: usize) -> Option<&'a [u8]> {
        let length = self.take(prefix)?.iter();
        self.take(length.fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes with their length in front, in `prefix` bytes.
    fn sized(prefix: usize, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len().to_be_bytes();
        [&length[length.len() - prefix..], bytes].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &sized(2, content)].concat()
    }

    /// A ClientHello of TLS 1.3 without a record around it (RFC 8446, section 4.1.2). `more` are further extensions.
    fn message(name: Option<&str>, protocols: &[&str], more: &[u8]) -> Vec<u8> {
        let mut extensions = Vec::new();
        if let Some(name) = name {
            let name = [&[0][..], &sized(2, name.as_bytes())].concat();
            extensions.extend(extension(0, &sized(2, &name)));
        }
        let protocols: Vec<u8> = (protocols.iter())
            .flat_map(|name| sized(1, name.as_bytes()))
            .collect();
        if !protocols.is_empty() {
            extensions.extend(extension(16, &sized(2, &protocols)));
        }
        // supported_versions, supported_groups and signature_algorithms
        extensions.extend(extension(43, &[2, 3, 4]));
        extensions.extend(extension(10, &[0, 2, 0, 29]));
        extensions.extend(extension(13, &[0, 2, 4, 3]));
        extensions.extend(more);
        let body = [
            &[3, 3][..],
            &[7; 32],
            &sized(1, &[9; 32]),
            &sized(2, &[0x13, 1]),
            &sized(1, &[0]),
            &sized(2, &extensions),
        ]
        .concat();
        [&[1][..], &sized(3, &body)].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        let record = |piece| [&[22, 3, 1][..], &sized(2, piece)].concat();
        message.chunks(size).flat_map(record).collect()
    }

    #[test]
    fn a_name_and_protocols_in_records_of_every_size() {
        let message = message(Some("WWW.Example.org"), &["h2", "http/1.1"], &[]);
        let expected = ClientHello::new("www.example.org", [&b"h2"[..], b"http/1.1"]);
        for size in 1..=message.len() {
            let text = records(&message, size);
            assert_eq!(ClientHello::read(&text), Some(expected.clone()));
            // Early data may follow, or anything that the server has to judge.
            for more in [&[23, 3, 3, 0, 1, 0][..], &[22, 3, 1, 0, 0], b"GET"] {
                let text = [&text[..], more].concat();
                assert_eq!(ClientHello::read(&text), Some(expected.clone()));
            }
        }
    }

    #[test]
    fn whatever_is_cut_off_is_awaited() {
        let message = message(Some("a.example"), &["h2"], &[]);
        for size in [1, 40, message.len()] {
            let text = records(&message, size);
            for cut in 0..text.len() {
                assert_eq!(ClientHello::read(&text[..cut]), None, "{size} {cut}");
            }
        }
    }

    #[test]
    fn a_client_may_say_neither() {
        let text = records(&message(None, &[], &[]), 1 << 14);
        assert_eq!(ClientHello::read(&text), Some(ClientHello::default()));
    }

    /// GREASE (RFC 8701), and a key share for post-quantum cryptography, which makes a ClientHello longer than a segment.
    #[test]
    fn what_is_not_known_is_passed_over() {
        let share = [&[0x11, 0xec][..], &sized(2, &[5; 1216])].concat();
        let more = [
            extension(0x0a0a, &[]),
            extension(0xfe0d, &[0; 200]), // encrypted ClientHello, or GREASE for it
            extension(51, &sized(2, &share)),
            extension(0xfafa, &[0]),
        ];
        let text = records(&message(Some("a.example"), &[], &more.concat()), 1 << 14);
        assert!(text.len() > 1448);
        let hello = ClientHello::read(&text).unwrap();
        assert_eq!(hello.name(), "a.example");
    }

    #[test]
    fn what_begins_no_connection_says_nothing() {
        let message = message(Some("a.example"), &[], &[]);
        let (good, parts) = (records(&message, 1 << 14), records(&message, 30));
        let with = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            bad
        };
        for bad in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"G".to_vec(),
            vec![22, 2],                                       // SSL 2
            vec![22, 3, 1, 0, 0],                              // an empty record
            vec![22, 3, 1, 64, 1],                             // a record that is too long
            vec![22, 3, 1, 0, 4, 2],                           // a ServerHello
            [&parts[..35], &[21, 3, 3, 0, 2, 2, 80]].concat(), // an alert in its middle
            with(8, 3),                                        // lengths that lie
            with(43, 255),
            with(80, 255),
        ] {
            assert_eq!(
                ClientHello::read(&bad),
                Some(ClientHello::default()),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn no_byte_that_changes_does_harm() {
        let good = records(&message(Some("a.example"), &["h2"], &[]), 30);
        for at in 0..good.len() {
            for byte in [0, 1, 127, 128, 255] {
                let mut other = good.clone();
                other[at] = byte;
                let _ = ClientHello::read(&other);
            }
        }
    }

    #[test]
    fn the_first_host_counts_and_no_dot_at_its_end() {
        assert_eq!(ClientHello::new("A.example.", []).name(), "a.example");
        let list = [
            &[1][..],
            &sized(2, b"other"),
            &[0],
            &sized(2, b"b.example."),
        ]
        .concat();
        let more = extension(0, &sized(2, &list));
        let text = records(&message(None, &[], &more), 1 << 14);
        assert_eq!(ClientHello::read(&text).unwrap().name(), "b.example");
    }
}
