//! What TLS clients say first (ClientHello, RFC 8446, section 4.1.2): as they say it, and in ways that one packet does
//! not decide.

/// Kinds of extensions.
pub const SERVER_NAME: u16 = 0;
pub const PADDING: u16 = 21;
const ALPN: u16 = 16;
const VERSIONS: u16 = 43;
/// An extension that no server knows.
pub const UNKNOWN: u16 = 0x0a0a;

/// Most extensions that the programs look at.
pub const EXTENSIONS_MOST: usize = 64;
/// Bytes of the longest name that the programs look at.
pub const NAME_MOST: usize = 255;

/// Where the lengths are in a ClientHello in one record, up to the name that its first extension has: what each is
/// the length of, the offset, and the number of bytes.
const LENGTHS: [(&str, usize, usize); 9] = [
    ("record", 3, 2),
    ("message", 6, 3),
    ("session", 43, 1),
    ("ciphers", 76, 2),
    ("compression", 82, 1),
    ("extensions", 84, 2),
    ("first extension", 88, 2),
    ("list of names", 90, 2),
    ("name", 93, 2),
];
/// Where the name begins.
const NAME_AT: usize = 95;

/// A ClientHello, by its extensions.
#[derive(Clone, Debug)]
pub struct Hello(Vec<Vec<u8>>);

impl Hello {
    /// Names no server.
    pub fn nameless() -> Self {
        Self(Vec::new())
            .with(
                ALPN,
                sized(2, [sized(1, "h2"), sized(1, "http/1.1")].concat()),
            )
            .with(VERSIONS, [2, 3, 4])
    }

    /// Names this server, in the first extension.
    pub fn of(name: impl AsRef<[u8]>) -> Self {
        Self::nameless().behind(SERVER_NAME, names(&[(0, name.as_ref())]))
    }

    /// Adds an extension at the end.
    pub fn with(mut self, kind: u16, content: impl AsRef<[u8]>) -> Self {
        self.0.push(extension(kind, content));
        self
    }

    /// Puts an extension in front of all others.
    pub fn behind(mut self, kind: u16, content: impl AsRef<[u8]>) -> Self {
        self.0.insert(0, extension(kind, content));
        self
    }

    /// Adds empty extensions at the end, until there are so many in all.
    pub fn of_so_many(mut self, extensions: usize) -> Self {
        self.0.resize(extensions, extension(UNKNOWN, []));
        self
    }

    /// Adds padding, with which the whole ClientHello in one record has so many bytes.
    pub fn of_bytes(self, bytes: usize) -> Self {
        let padding = bytes - self.whole().len() - 4;
        self.with(PADDING, vec![0; padding])
    }

    /// The handshake message.
    pub fn message(&self) -> Vec<u8> {
        message(&[body(), sized(2, self.0.concat())].concat())
    }

    /// All of it in one record.
    pub fn whole(&self) -> Vec<u8> {
        record(self.message())
    }

    /// All of it in records with so many bytes of content each.
    pub fn in_records(&self, bytes: usize) -> Vec<u8> {
        self.message().chunks(bytes).flat_map(record).collect()
    }
}

/// Bytes with their length in front, in `prefix` bytes.
pub fn sized(prefix: usize, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let length = bytes.as_ref().len().to_be_bytes();
    [&length[length.len() - prefix..], bytes.as_ref()].concat()
}

fn extension(kind: u16, content: impl AsRef<[u8]>) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &sized(2, content)].concat()
}

/// The content of the extension that names servers: each with the type of its name, which is 0 for a host's.
pub fn names(list: &[(u8, &[u8])]) -> Vec<u8> {
    let one = |(kind, name): &(u8, &[u8])| [&[*kind][..], &sized(2, name)].concat();
    sized(2, list.iter().flat_map(one).collect::<Vec<u8>>())
}

/// What is in front of the extensions: version, random, session, two ciphers, and a compression. If one of them had
/// another length, what follows would make no sense.
fn body() -> Vec<u8> {
    let (session, ciphers) = (sized(1, [9; 32]), sized(2, [0xc0, 0x2f, 0xc0, 0x30]));
    [&[3, 3][..], &[7; 32], &session, &ciphers, &sized(1, [0xff])].concat()
}

fn message(body: &[u8]) -> Vec<u8> {
    [&[1][..], &sized(3, body)].concat()
}

pub fn record(content: impl AsRef<[u8]>) -> Vec<u8> {
    [&[0x16, 3, 1][..], &sized(2, content)].concat()
}

/// Beginnings of connections that one packet does not decide, each with its name. All that name a server name this one.
pub fn undecided(name: &str) -> Vec<(String, Vec<u8>)> {
    [
        cut(name),
        lies(name),
        no_hellos(name),
        odd_names(name),
        odd_extensions(name),
    ]
    .concat()
}

/// ClientHellos of which something is still to come, and such as take several records.
fn cut(name: &str) -> Vec<(String, Vec<u8>)> {
    let hello = Hello::of(name);
    let (whole, bytes) = (hello.whole(), hello.message().len());
    let cuts = (1..whole.len()).map(|at| (format!("cut at {at}"), whole[..at].to_vec()));
    let halves = [1, 4, 40, bytes / 2, bytes - 1];
    let records = halves.map(|size| (format!("records of {size}"), hello.in_records(size)));
    cuts.chain(records).collect()
}

/// ClientHellos one of whose lengths is not right.
fn lies(name: &str) -> Vec<(String, Vec<u8>)> {
    let whole = Hello::of(name).whole();
    let mut lies = Vec::new();
    for (of, at, bytes) in LENGTHS {
        let right = length_at(&whole, at, bytes);
        let most = (1 << (8 * bytes)) - 1;
        for length in [0, 1, right - 1, right + 1, 1 << (8 * bytes - 1), most] {
            // No extensions at all are as good as some.
            let is_good = length == right || (of, length) == ("extensions", 0);
            if !is_good && length <= most {
                let lie = with_length(&whole, at, bytes, length);
                lies.push((format!("{length} as the length of: {of}"), lie));
            }
        }
    }
    // The last extension is that of the versions, with three bytes.
    let last = whole.len() - 5;
    for length in [0, 2, 4, 0xffff] {
        let lie = with_length(&whole, last, 2, length);
        lies.push((format!("{length} as the length of: last extension"), lie));
    }
    // Bytes behind the record are none of its own.
    let longer = with_length(&whole, 3, 2, length_at(&whole, 3, 2) + 9);
    lies.push((
        "a record that ends in the next packet".into(),
        [&longer[..], &[0; 8]].concat(),
    ));
    lies
}

fn length_at(hello: &[u8], at: usize, bytes: usize) -> usize {
    let shift_in = |length, byte: &u8| length << 8 | usize::from(*byte);
    hello[at..at + bytes].iter().fold(0, shift_in)
}

fn with_length(hello: &[u8], at: usize, bytes: usize, length: usize) -> Vec<u8> {
    let (mut changed, length) = (hello.to_vec(), length.to_be_bytes());
    changed[at..at + bytes].copy_from_slice(&length[length.len() - bytes..]);
    changed
}

/// What is no ClientHello.
fn no_hellos(name: &str) -> Vec<(String, Vec<u8>)> {
    let whole = Hello::of(name).whole();
    let with = |at: usize, byte: u8| {
        let mut other = whole.clone();
        other[at] = byte;
        other
    };
    let http = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
    [
        ("a request", http.into_bytes()),
        ("zeros", vec![0; 200]),
        ("ones", vec![0xff; 200]),
        ("a record of another type", with(0, 0x17)),
        ("an alert", with(0, 0x15)),
        ("a letter", with(0, b'G')),
        ("SSL 2", with(1, 2)),
        ("version 4", with(1, 4)),
        ("a ServerHello", with(5, 2)),
        ("a request to say hello", with(5, 0)),
        ("a message that is too long", with(6, 1)),
        ("no extensions", record(message(&body()))),
        (
            "a byte behind compression",
            record(message(&[body(), vec![0]].concat())),
        ),
        (
            "an empty record first",
            [record([]), whole.clone()].concat(),
        ),
        ("a byte first", [&[0][..], &whole].concat()),
    ]
    .map(|(what, bytes)| (what.to_owned(), bytes))
    .into()
}

/// Names that no host has, or that servers may read in different ways.
fn odd_names(name: &str) -> Vec<(String, Vec<u8>)> {
    let changes = [
        ("a zero byte in front", format!("\0{name}")),
        ("a zero byte and a label in front", format!("a\0.{name}")),
        ("a zero byte at the end", format!("{name}\0")),
        ("a zero byte in it", name.replacen('.', "\0", 1)),
        ("a blank in front", format!(" {name}")),
        ("a blank in it", name.replacen('.', " .", 1)),
        ("a blank at the end", format!("{name} ")),
        ("a line end", format!("{name}\r\n")),
        ("a tab", format!("{name}\t")),
        ("a colon in front", format!(":{name}")),
        ("a port", format!("{name}:443")),
        ("no port", format!("{name}:")),
        ("a dot at the end", format!("{name}.")),
        ("two dots at the end", format!("{name}..")),
        ("a dot", ".".into()),
        ("nothing", String::new()),
        (
            "too many letters",
            format!("{}.{name}", "x".repeat(NAME_MOST - name.len())),
        ),
        (
            "far too many letters",
            format!("{}.{name}", "x".repeat(600)),
        ),
    ];
    changes
        .map(|(what, name)| (format!("name with {what}"), Hello::of(name).whole()))
        .into()
}

/// Extensions that name another number of servers than one, or something else than a host; and too many extensions.
fn odd_extensions(name: &str) -> Vec<(String, Vec<u8>)> {
    let (hello, name) = (Hello::nameless(), name.as_bytes());
    let listed = |list: &[(u8, &[u8])]| hello.clone().with(SERVER_NAME, names(list));
    let raw = |content: &[u8]| hello.clone().with(SERVER_NAME, content);
    [
        ("two names", listed(&[(0, name), (0, name)])),
        (
            "two names that differ",
            listed(&[(0, name), (0, b"x.test")]),
        ),
        (
            "a name behind one of another type",
            listed(&[(1, b"x"), (0, name)]),
        ),
        (
            "a name before one of another type",
            listed(&[(0, name), (1, b"x")]),
        ),
        ("a name of another type", listed(&[(1, name)])),
        ("no name in the list", listed(&[])),
        ("no list", raw(&[])),
        ("half a length", raw(&[0])),
        ("a list of one byte", raw(&[0, 1, 0])),
        (
            "a byte behind the list",
            raw(&[&names(&[(0, name)])[..], &[0]].concat()),
        ),
        (
            "a list for each name",
            listed(&[(0, name)]).with(SERVER_NAME, names(&[(0, name)])),
        ),
        (
            "an empty list for the second name",
            listed(&[(0, name)]).with(SERVER_NAME, []),
        ),
        (
            "too many extensions",
            listed(&[(0, name)]).of_so_many(EXTENSIONS_MOST + 1),
        ),
        (
            "far too many extensions",
            listed(&[(0, name)]).of_so_many(300),
        ),
        (
            "the name behind too many others",
            hello
                .clone()
                .of_so_many(EXTENSIONS_MOST)
                .with(SERVER_NAME, names(&[(0, name)])),
        ),
    ]
    .map(|(what, hello)| (what.to_owned(), hello.whole()))
    .into()
}

#[test]
fn lengths_are_where_they_are_said_to_be() {
    let whole = Hello::of("a.test").whole();
    for (of, at, bytes) in LENGTHS {
        let end = match of {
            "session" => 76,
            "ciphers" => 82,
            "compression" => 84,
            "record" | "message" | "extensions" => whole.len(),
            _ => NAME_AT + "a.test".len(),
        };
        assert_eq!(at + bytes + length_at(&whole, at, bytes), end, "{of}");
    }
    assert_eq!(&whole[NAME_AT..][..6], b"a.test");
}
