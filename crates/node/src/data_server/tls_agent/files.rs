//! Files that the daemon has for the process: a folder with the sockets by which they meet, and the private keys.

use std::{
    ffi::CString,
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow};
use baton_agent::{
    Account,
    terminate::{process, settings::Settings},
};
use baton_tls::PemFile;
use nix::unistd::{User, getgrouplist};
use tokio::net::UnixListener;

/// In the folder only the owner of a file can replace it: the process cannot replace the daemon's socket.
const MODE: u32 = 0o1770;

/// Listens for processes in this folder, which is made if need be. A process of an earlier daemon may be there.
pub fn listen(directory: &Path) -> io::Result<UnixListener> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => fs::set_permissions(directory, Permissions::from_mode(MODE))?,
    }
    let socket = directory.join(process::DAEMON);
    match fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => (),
    }
    let listener = UnixListener::bind(&socket)?;
    // The folder keeps others away.
    fs::set_permissions(&socket, Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Lets the processes of this user into the folder, besides this one.
pub fn share(directory: &Path, user: &str) -> Result<Account> {
    let found = User::from_name(user).with_context(|| format!("cannot look up the user {user}"))?;
    let found = found.ok_or_else(|| {
        anyhow!(
            "there is no user {user}, as whom the TLS agent is to run: create it (useradd --system {user}), or name \
             another one in [local] tls_user"
        )
    })?;
    chown(directory, None, Some(found.gid.as_raw()))
        .and_then(|()| fs::set_permissions(directory, Permissions::from_mode(MODE)))
        .with_context(|| format!("cannot let {user} into {}", directory.display()))?;
    let groups = CString::new(user)
        .map_err(io::Error::from)
        .and_then(|name| Ok(getgrouplist(&name, found.gid)?))
        .with_context(|| format!("cannot look up the groups of {user}"))?;
    Ok(Account {
        user: found.uid,
        group: found.gid,
        groups,
    })
}

/// Reads the files with certificates and private keys, which the process may not read itself.
pub fn read(settings: &Settings) -> Result<Vec<PemFile>> {
    let mut files: Vec<PemFile> = Vec::new();
    for service in &settings.services {
        for path in &service.certificates {
            if files.iter().all(|file| file.file != *path) {
                let file = PemFile::read(path);
                files.push(file.with_context(|| format!("service {}", service.name))?);
            }
        }
    }
    Ok(files)
}
