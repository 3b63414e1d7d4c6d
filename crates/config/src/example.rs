//! A configuration for the tests of those that read one.

use std::{io, path::Path};

use crate::{Config, Source};

/// A configuration with cs1, ds1 and ds2 on 192.0.2.0/24, and one service that both data servers have.
pub fn example() -> Config {
    let key = "0123456789abcdef".repeat(4);
    let node = |name, host, role| {
        format!("[[node]]\nname = \"{name}\"\naddress = \"192.0.2.{host}\"\nroles = [\"{role}\"]\n")
    };
    let text = format!(
        "[cluster]\nkey = \"{key}\"\n{}{}{}[[service]]\nname = \"web\"\naddress = \"192.0.2.100\"\nport = 80\n",
        node("cs1", 2, "cs"),
        node("ds1", 11, "ds"),
        node("ds2", 12, "ds"),
    );
    let source = Source {
        path: Path::new("baton.toml"),
        text: &text,
        mode: Some(0o600),
    };
    let none = |_: &Path| Err(io::ErrorKind::NotFound.into());
    Config::parse(source, none)
        .expect("the configuration is good")
        .config
}
