//! Certificates, and which of them a client is shown.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::sign::CertifiedKey;

use crate::certificate_file::{About, CertificateError, CertificateFile, PemFile};

/// Certificates with their private keys. A client is shown the one for the name that it asks for. A clone shares them.
#[derive(Clone, Debug)]
pub struct Certificates(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// In the order of the files, of which there is at least one.
    keys: Vec<Arc<CertifiedKey>>,
    /// Which keys have a certificate for a name. A wildcard has the name with its asterisk.
    by_name: HashMap<String, Vec<usize>>,
    about: Vec<About>,
    warnings: Vec<CertificateError>,
}

impl Certificates {
    /// Reads and parses PEM files, as [`Certificates::parse`] does.
    ///
    /// # Errors
    /// There is no file, or one of them cannot be used.
    pub fn load(files: &[impl AsRef<Path>]) -> Result<Self, CertificateError> {
        let read = files.iter().map(|file| PemFile::read(file.as_ref()));
        Self::parse(&read.collect::<Result<Vec<_>, _>>()?)
    }

    /// Parses PEM files. In each must be one certificate, behind it the rest of its chain if it has one, and its private
    /// key as PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    /// There is no file, or one of them cannot be used.
    pub fn parse<'a>(
        files: impl IntoIterator<Item = &'a PemFile>,
    ) -> Result<Self, CertificateError> {
        let mut inner = Inner {
            keys: Vec::new(),
            by_name: HashMap::new(),
            about: Vec::new(),
            warnings: Vec::new(),
        };
        for file in files {
            let file = CertificateFile::parse(file)?;
            for name in &file.about.names {
                let of_name = inner.by_name.entry(name.clone()).or_default();
                of_name.push(inner.keys.len());
            }
            inner.about.push(file.about);
            inner.keys.push(Arc::new(file.key));
            inner.warnings.extend(file.warning);
        }
        match inner.keys.is_empty() {
            true => Err(CertificateError::NoFile),
            false => Ok(Self(Arc::new(inner))),
        }
    }

    /// What should be changed about the files though they can be used: others than their owners may read a private key.
    pub fn warnings(&self) -> &[CertificateError] {
        &self.0.warnings
    }

    /// What the certificates say, in the order of the files.
    pub fn about(&self) -> &[About] {
        &self.0.about
    }

    /// Whether there is a certificate for this name, which is in lower case. A name that begins with an asterisk means
    /// all names that have another label there.
    pub fn are_for(&self, name: &str) -> bool {
        self.of(name).is_some()
    }

    /// The certificates that have a name, or else those that have it by a wildcard.
    fn of(&self, name: &str) -> Option<&Vec<usize>> {
        let by_name = &self.0.by_name;
        let by_wildcard = || {
            let (_, parent) = name.split_once('.')?;
            by_name.get(&format!("*.{parent}"))
        };
        by_name.get(name).or_else(by_wildcard)
    }

    /// The certificate for a name, in lower case: one that has it, else one that has it by a wildcard in place of its
    /// first label (RFC 9525, section 6.3), else the first file's. Of several for the same name, the first counts of
    /// which the client can verify signatures.
    pub(crate) fn choose(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Arc<CertifiedKey> {
        let keys = &self.0.keys;
        let of_name = name.and_then(|name| self.of(name));
        let candidates = of_name.map_or(&[0][..], Vec::as_slice);
        let suits = |key: &&Arc<CertifiedKey>| key.key.choose_scheme(schemes).is_some();
        let of = || candidates.iter().map(|&index| &keys[index]); // by_name has only indices of keys
        Arc::clone(of().find(suits).unwrap_or_else(|| &keys[candidates[0]])) // no list in by_name is empty
    }
}
