//! Go's net/http, in a small program whose source is part of this crate. The program is built when a lab
//! first needs it, and again when its source has changed.

use std::path::{Path, PathBuf};

use super::files;
use super::prepared::{Prepared, make_directory, write};
use crate::error::{Doing, Result};
use crate::file::{Host, Server};
use crate::{state, tool};

const SOURCE: [(&str, &str); 3] = [
    ("go.mod", include_str!("../../servers/goserver/go.mod")),
    ("main.go", include_str!("../../servers/goserver/main.go")),
    (
        "websocket.go",
        include_str!("../../servers/goserver/websocket.go"),
    ),
];

pub(super) fn provide(progress: &mut dyn FnMut(&str)) -> Result<()> {
    let directory = directory();
    let _lock = state::Lock::take(&directory.join("lock"), progress)?;
    if is_built(&directory) {
        return Ok(());
    }
    progress("building the Go server (once; a minute if Go's own library must be built too)");
    for (name, text) in SOURCE {
        write(&directory.join(name), text)?;
    }
    let built = directory.join("goserver.new");
    let mut build = tool::tool("go", ["build", "-trimpath", "-o"])?;
    build
        .arg(&built)
        .arg(".")
        .current_dir(&directory)
        // The program needs only the standard library: no C compiler, no network, no other toolchain.
        .envs([
            ("CGO_ENABLED", "0"),
            ("GOPROXY", "off"),
            ("GOTOOLCHAIN", "local"),
            ("GOFLAGS", ""),
        ]);
    if std::env::var_os("HOME").is_none() && std::env::var_os("GOCACHE").is_none() {
        build.env("GOCACHE", directory.join("cache"));
    }
    tool::finish(build, None)?;
    let doing = || format!("install {}", binary().display());
    std::fs::rename(&built, binary()).doing(doing)?;
    write(&directory.join("built-from"), &source())
}

pub(super) fn prepare(host: &Host, server: &Server, directory: &Path) -> Result<Prepared> {
    make_directory(directory)?;
    let words = [
        binary().display().to_string(),
        format!("-name={}", host.name),
        format!("-listen=:{}", server.port.number()),
        format!("-files={}", files::directory().display()),
        format!("-access-log={}", directory.join("access.log").display()),
        format!("-mptcp={}", server.mptcp),
    ];
    Ok(Prepared {
        words: words.into(),
        leftovers: Vec::new(),
    })
}

fn is_built(directory: &Path) -> bool {
    binary().exists()
        && std::fs::read_to_string(directory.join("built-from")).is_ok_and(|text| text == source())
}

fn source() -> String {
    SOURCE.map(|(_, text)| text).concat()
}

fn binary() -> PathBuf {
    directory().join("goserver")
}

fn directory() -> PathBuf {
    Path::new(files::CACHE).join("goserver")
}
