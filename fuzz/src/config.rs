//! Fuzzes the reading of a configuration from any text: either it is one, or the error says something.

use std::path::Path;

use baton_config::{Config, KeyFile, Source, diff};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let source = Source {
        path: Path::new("baton.toml"),
        text,
        mode: Some(0o600),
    };
    let keys = |_: &Path| {
        Ok(KeyFile {
            text: KEY.into(),
            mode: 0o600,
        })
    };
    match Config::parse(source, keys) {
        Ok(loaded) => {
            let config = &loaded.config;
            for node in &config.nodes {
                assert_eq!(diff(config, config, &node.name), Ok(None));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
