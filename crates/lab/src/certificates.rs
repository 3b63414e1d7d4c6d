//! The certificates that a lab's services name (`certificates = ["www.example.pem"]`), which are new at every `up`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::{Doing, Result};
use crate::file::Lab;
use crate::state;
use crate::tool;

/// Puts each file that services name into this directory of a node, readable only by its owner. The file NAME.pem has a
/// key, and a certificate for NAME that nobody else has signed. All nodes have the same.
pub(crate) fn put(lab: &Lab, directory: &Path) -> Result<()> {
    for name in names(lab) {
        let file = format!("{name}.pem");
        let of_all = state::directory(&lab.name).join(&file);
        if !of_all.exists() {
            make(name, &of_all)?;
        }
        let of_node = directory.join(&file);
        fs::copy(&of_all, &of_node)
            .and_then(|_| fs::set_permissions(&of_node, fs::Permissions::from_mode(0o600)))
            .doing(|| format!("write {}", of_node.display()))?;
    }
    Ok(())
}

/// The names that the lab's services have certificates for.
fn names(lab: &Lab) -> Vec<&str> {
    let services = lab.config.iter().flat_map(|config| &config.service);
    let lists = services.filter_map(|service| service.get("certificates")?.as_array());
    let files = lists.flatten().filter_map(|file| file.as_str());
    files.filter_map(|file| file.strip_suffix(".pem")).collect()
}

fn make(name: &str, file: &Path) -> Result<()> {
    let certificate = file.with_extension("certificate");
    self_signed(name, file, &certificate)?;
    fs::read(&certificate)
        .and_then(|certificate| Ok([fs::read(file)?, certificate].concat()))
        .and_then(|both| fs::write(file, both))
        .doing(|| format!("write {}", file.display()))
}

/// Makes a key, and a certificate for this name that nobody else has signed.
pub(crate) fn self_signed(name: &str, key: &Path, certificate: &Path) -> Result<()> {
    let (key, certificate) = (key.display(), certificate.display());
    tool::run(&format!(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN={name} \
         -addext subjectAltName=DNS:{name} -keyout {key} -out {certificate}"
    ))
    .map(drop)
}
