//! Debian's apache2 with the event MPM.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::files;
use super::prepared::{Prepared, first_word, make_directory, write};
use crate::error::{Doing, Result};
use crate::file::{Host, Server};

const MODULES: [&str; 8] = [
    "mpm_event",
    "authz_core",
    "alias",
    "env",
    "headers",
    "include",
    "cgid",
    "setenvif",
];

/// The program behind `/upload`. It reads the body to its end, chunked or not.
const UPLOAD: &str = r#"#!/bin/sh
set -e
body=$(mktemp)
trap 'rm -f "$body"' EXIT
cat > "$body"
length=$(stat -c %s "$body")
sum=$(sha256sum < "$body" | cut -d ' ' -f 1)
printf 'Content-Type: text/plain\r\n\r\n%s %s\n' "$length" "$sum"
"#;

/// Installs the program behind `/upload`. It cannot be in the state directory: /run is often
/// mounted noexec.
pub(super) fn provide() -> Result<()> {
    let upload = upload();
    if std::fs::read_to_string(&upload).is_ok_and(|text| text == UPLOAD) {
        return Ok(());
    }
    make_directory(&Path::new(files::CACHE).join("cgi"))?;
    // The file is renamed into place, so that no server starts a program that is half written.
    let aside = upload.with_extension(std::process::id().to_string());
    write(&aside, UPLOAD)?;
    std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o755))
        .and_then(|()| std::fs::rename(&aside, &upload))
        .doing(|| format!("install {}", upload.display()))
}

pub(super) fn prepare(host: &Host, server: &Server, directory: &Path) -> Result<Prepared> {
    let own = directory.join("apache");
    let pages = own.join("pages");
    make_directory(&pages)?;
    write(&pages.join("whoami"), &format!("{}\n", host.name))?;
    write(&pages.join("health"), "ok\n")?;
    let placed = format!("{} <!--#echo var=\"REQUEST_URI\" -->\n", host.name);
    write(&pages.join("placed"), &placed)?;
    let config = own.join("apache.conf");
    write(&config, &text(host, server, directory, &own))?;
    Ok(Prepared {
        words: vec![
            first_word("apache2")?,
            "-f".into(),
            config.to_string_lossy().into_owned(),
            "-DFOREGROUND".into(),
        ],
        leftovers: vec![own.join("apache.pid"), own.join("cgid.sock")],
    })
}

fn upload() -> PathBuf {
    Path::new(files::CACHE).join("cgi/upload")
}

fn text(host: &Host, server: &Server, directory: &Path, own: &Path) -> String {
    let name = &host.name;
    let port = server.port.number();
    let workers = server.workers;
    let most = u16::from(workers) * 2;
    let threads = most * 64;
    let modules: String = MODULES
        .iter()
        .map(|one| format!("LoadModule {one}_module /usr/lib/apache2/modules/mod_{one}.so\n"))
        .collect();
    let (directory, own) = (directory.display(), own.display());
    let files = files::directory();
    let (files, upload) = (files.display(), upload());
    let upload = upload.display();
    format!(
        r#"ServerRoot {own}
DefaultRuntimeDir {own}
PidFile {own}/apache.pid
ServerName {name}
User www-data
Group www-data
Listen {port}
ListenBacklog 4096
ErrorLog /dev/stderr
LogLevel error

{modules}
StartServers {workers}
ServerLimit {most}
ThreadsPerChild 64
MaxRequestWorkers {threads}
MinSpareThreads 64
MaxSpareThreads {threads}
AsyncRequestWorkerFactor 64
MaxConnectionsPerChild 0

Timeout 3600
KeepAlive On
KeepAliveTimeout 3600
MaxKeepAliveRequests 0
EnableSendfile On
LimitRequestBody 0
ScriptSock {own}/cgid.sock

SetEnvIf Request_URI "^/health$" silent
LogFormat "%a %{{remote}}p \"%r\" %>s %B" lab
CustomLog {directory}/access.log lab env=!silent

Header always set X-Served-By {name}
DocumentRoot {files}
AliasMatch "^/ds[0-9]+/([0-9]+[bkm])$" {files}/$1
AliasMatch "^/ds[0-9]+/" {own}/pages/placed
AliasMatch "^/(whoami|health)$" {own}/pages/$1
ScriptAlias /upload {upload}
<Directory />
    Require all granted
</Directory>
<Directory {own}/pages>
    ForceType text/plain
    Options +Includes
</Directory>
<Files placed>
    SetOutputFilter INCLUDES
</Files>
"#
    )
}
