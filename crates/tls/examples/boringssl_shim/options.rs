//! What the runner asks for in a test.
//!
//! Each option has one dash. Behind `-on-initial` it is for the first connection of the test, and behind `-on-resume` for
//! those after it, which try to resume the first one's session.

use std::fmt;
use std::path::PathBuf;

/// All curves of rustls, its favourite first: X25519, P-256 and P-384.
const CURVES: [u16; 3] = [29, 23, 24];

const TLS12: u16 = 0x303;
const TLS13: u16 = 0x304;

/// The options for a connection.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub port: u16,
    /// How many connections come after the first.
    pub resume_count: usize,
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The protocols that can be agreed upon.
    pub alpn: Vec<Vec<u8>>,
    pub has_tickets: bool,
    curves: Vec<u16>,
    /// Each read returns at most one byte.
    pub reads_single_bytes: bool,
    pub expected: Expected,
    pub exchange: Exchange,
}

/// What must have been agreed upon after the handshake.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    pub server_name: Option<String>,
    pub alpn: Option<String>,
    pub version: Option<u16>,
    pub suite: Option<u16>,
    pub retry: Option<bool>,
}

/// What is to happen after the handshake.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    pub writes_first: bool,
    /// A first record has been written only in part when the server reads.
    pub writes_first_in_part: bool,
    pub writes_records_of_many_sizes: bool,
    /// The server ends the connection without reading.
    pub shuts_down: bool,
    /// The client must have ended the session in order.
    pub expects_close_notify: bool,
    /// The server replaces its key before it answers.
    pub updates_key: bool,
}

/// What an agent cannot do.
#[derive(Debug)]
pub struct Unsupported(pub String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Options {
    /// The options of the first connection, and of those after it.
    pub fn parse(arguments: &[String]) -> Result<(Self, Self), Unsupported> {
        if !arguments.iter().any(|argument| argument == "-server") {
            return Err(Unsupported("a client".to_owned()));
        }
        let fresh = Self {
            has_tickets: true,
            ..Self::default()
        };
        let (mut first, mut later) = (fresh.clone(), fresh);
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (is_first, is_later, name) =
                if let Some(name) = argument.strip_prefix("-on-initial") {
                    (true, false, name)
                } else if let Some(name) = argument.strip_prefix("-on-resume") {
                    (false, true, name)
                } else {
                    (true, true, argument.as_str())
                };
            let value = match has_value(name) {
                true => arguments.next().map_or("", String::as_str),
                false => "",
            };
            let chosen = [(is_first, &mut first), (is_later, &mut later)];
            for (_, options) in chosen.into_iter().filter(|(is_meant, _)| *is_meant) {
                options.set(name, value)?;
            }
        }
        first.check()?;
        later.check()?;
        Ok((first, later))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Unsupported> {
        let unsupported = || Unsupported(lacking(name).to_owned());
        let number = || value.parse::<u16>().map_err(|_| unsupported());
        match name {
            "-port" => self.port = number()?,
            "-server" => {}
            "-resume-count" => self.resume_count = number()?.into(),
            "-cert-file" => self.certificate = value.into(),
            "-key-file" => self.key = value.into(),
            "-async" => self.reads_single_bytes = true,
            "-no-ticket" => self.has_tickets = false,
            "-curves" => self.curves.push(number()?),
            "-min-version" if number()? == TLS12 => {}
            "-max-version" if number()? == TLS13 => {}
            "-select-alpn" => self.alpn = vec![value.into()],
            "-decline-alpn" => self.alpn.clear(),
            "-reject-alpn" => self.alpn = vec![b"offered by no client".to_vec()],

            "-expect-server-name" => self.expected.server_name = Some(value.to_owned()),
            "-expect-alpn" => self.expected.alpn = Some(value.to_owned()),
            "-expect-version" => self.expected.version = Some(number()?),
            "-expect-cipher" => self.expected.suite = Some(number()?),
            "-expect-hrr" => self.expected.retry = Some(true),
            "-expect-no-hrr" => self.expected.retry = Some(false),

            "-shim-writes-first" => self.exchange.writes_first = true,
            "-read-with-unfinished-write" => self.exchange.writes_first_in_part = true,
            "-write-different-record-sizes" => self.exchange.writes_records_of_many_sizes = true,
            "-shim-shuts-down" => self.exchange.shuts_down = true,
            "-check-close-notify" => self.exchange.expects_close_notify = true,
            "-key-update" => self.exchange.updates_key = true,

            // What these ask for is always so: no version before TLS 1.2, a handshake of its own before everything else,
            // tickets that are made and read by code of this project, and a look at the ClientHello for its name.
            "-no-tls1" | "-no-tls11" | "-implicit-handshake" | "-no-op-extra-handshake" => {}
            "-use-ticket-callback"
            | "-renew-ticket"
            | "-use-early-callback"
            | "-install-ddos-callback" => {}
            "-read-size" => {}
            // The runner sees by itself whether these are fulfilled, and sessions do not tell.
            "-expect-advertised-alpn" | "-expect-session-miss" | "-expect-curve-id" => {}
            "-expect-extended-master-secret" | "-expect-no-session-id" => {}
            _ => return Err(unsupported()),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Unsupported> {
        if !self.curves.is_empty() && self.curves != CURVES {
            return Err(Unsupported(lacking("-curves").to_owned()));
        }
        Ok(())
    }
}

/// Whether the option's value is the next argument.
fn has_value(name: &str) -> bool {
    matches!(
        name,
        "-port"
            | "-resume-count"
            | "-cert-file"
            | "-key-file"
            | "-curves"
            | "-min-version"
            | "-max-version"
            | "-select-alpn"
            | "-read-size"
            | "-expect-server-name"
            | "-expect-alpn"
            | "-expect-version"
            | "-expect-cipher"
            | "-expect-advertised-alpn"
            | "-expect-curve-id"
    )
}

/// What a server would need for an option that is not supported.
fn lacking(option: &str) -> &str {
    match option {
        "-dtls" | "-quic" => "another protocol than TLS",
        "-min-version" | "-max-version" | "-no-tls12" | "-no-tls13" => {
            "other versions than both TLS 1.2 and TLS 1.3"
        }
        "-cipher" | "-curves" | "-on-shim-curves" | "-signing-prefs" | "-server-preference"
        | "-expect-cipher-aes" => "other suites, curves or signatures than those of agents",
        "-require-any-client-certificate"
        | "-verify-peer"
        | "-verify-fail"
        | "-verify-prefs"
        | "-expect-verify-result"
        | "-expect-peer-signature-algorithm"
        | "-expect-peer-verify-pref"
        | "-retain-only-sha256-client-cert" => "certificates of clients",
        "-enable-early-data"
        | "-expect-early-data-reason"
        | "-expect-accept-early-data"
        | "-expect-reject-early-data" => "early data",
        "-export-keying-material" | "-export-traffic-secrets" | "-tls-unique" => {
            "secrets that are exported from the session"
        }
        "-ocsp-response"
        | "-use-ocsp-callback"
        | "-enable-ocsp-stapling"
        | "-signed-cert-timestamps" => "stapled responses about certificates",
        "-enable-channel-id" | "-expect-channel-id" => "Channel ID",
        "-ech-server-config" => "Encrypted Client Hello",
        "-psk" => "keys that are agreed upon elsewhere",
        "-advertise-npn" => "Next Protocol Negotiation",
        "-application-settings" | "-defer-alps" => "application settings",
        "-delegated-credential" => "delegated credentials",
        "-srtp-profiles" => "SRTP",
        "-install-cert-compression-algs" | "-install-one-cert-compression-alg" => {
            "compressed certificates"
        }
        "-expect-session-id" => "sessions that servers keep",
        "-renegotiate-freely" | "-renegotiate-ignore" | "-renegotiate-once" => "renegotiation",
        "-jdk11-workaround" => "a workaround for Java 11",
        // These are about the functions of BoringSSL's library, or about its tickets.
        _ => "something that only BoringSSL has",
    }
}
