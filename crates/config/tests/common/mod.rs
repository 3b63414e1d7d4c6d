//! Helpers that the tests share: a source, and key files that exist only here.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use baton_config::{Config, Error, KeyFile, Loaded, NodeKeys, Source};

/// The commented sample of the repository.
pub const SAMPLE: &str = include_str!("../../../../baton.toml");

/// The sample with the pools and routes that it has only as comments.
pub fn routed() -> String {
    let (before, shown) = SAMPLE.split_once("# [[service.pool]]").unwrap();
    let is_key = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        key != line && key.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let lines = shown.lines().map(|line| match line.strip_prefix("# ") {
        Some(bare) if bare.starts_with("[[") || is_key(bare) => bare,
        _ => line,
    });
    let shown: Vec<&str> = lines.collect();
    format!("{before}[[service.pool]]{}\n", shown.join("\n"))
}

/// Parses `text` as `baton.toml` in `/etc/baton`, where the key files are those of `key_file()`. `cluster.key` is a
/// good one.
pub fn parse(text: &str) -> Result<Loaded, Error> {
    let source = Source {
        path: Path::new("/etc/baton/baton.toml"),
        text,
        mode: Some(0o600),
    };
    Config::parse(source, key_file)
}

/// The keys of the node at 192.0.2.`last`. They have a key for no other node than 192.0.2.2.
fn own_keys(last: u8) -> String {
    let secret = "0123456789abcdef".repeat(4).parse().unwrap();
    let peers = [Ipv4Addr::new(192, 0, 2, 2)];
    NodeKeys::new(&secret, None, Ipv4Addr::new(192, 0, 2, last), peers).text(&[])
}

fn key_file(path: &Path) -> io::Result<KeyFile> {
    let file = |text: String, mode| Ok(KeyFile { text, mode });
    match path.strip_prefix("/etc/baton").ok().and_then(Path::to_str) {
        Some("cluster.key") => file("0123456789abcdef".repeat(4) + "\n", 0o600),
        Some("cluster.previous.key") => file("fedcba9876543210".repeat(4), 0o400),
        Some("open.key") => file("00112233445566778899aabbccddeeff".repeat(2), 0o644),
        Some("short.key") => file("0123".into(), 0o600),
        Some("empty.key") => file(String::new(), 0o600),
        Some("ds1.key") => file(own_keys(11), 0o600),
        Some("ds2.key") => file(own_keys(12), 0o600),
        Some("ds1.torn.key") => file(own_keys(11).replace("192.0.2.2 ", "192.0.2.2 x"), 0o600),
        Some("ds1.old.key") => file(own_keys(11).replace("hash ", "# "), 0o600),
        Some("hash.key") => file("00112233445566778899aabbccddeeff\n".into(), 0o600),
        Some("zero.key") => file("0".repeat(64), 0o600),
        _ => Err(io::Error::from_raw_os_error(2)),
    }
}
