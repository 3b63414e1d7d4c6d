//! A file with a certificate, the rest of its chain, and its private key, as PEM (RFC 7468).

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use webpki::EndEntityCert;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use zeroize::Zeroizing;

/// The permissions of others than the file's owner.
const OF_OTHERS: u32 = 0o077;

/// What is wrong with the files of certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// There are none.
    #[error("there is no file with a certificate: TLS needs at least one")]
    NoFile,
    /// One of them cannot be used, or should not be as it is.
    #[error("the certificate file {} {problem}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: CertificateProblem,
    },
}

/// What is wrong with a file, as the end of a sentence that begins with its name.
#[derive(Debug, thiserror::Error)]
pub enum CertificateProblem {
    /// It cannot be read.
    #[error("cannot be read ({0}): see that it exists, and that this program's user may read it")]
    Unreadable(#[source] io::Error),
    /// It is broken as PEM.
    #[error("is not PEM as it should be ({0}): copy it again from where it came from")]
    NotPem(#[source] pem::Error),
    /// It has no certificate.
    #[error(
        "has no certificate: write the server's certificate into it, behind it those of its chain, and its key"
    )]
    NoCertificate,
    /// It has no private key that can be read.
    #[error(
        "has no private key: write the certificate's key into it too. An encrypted key must be decrypted first, as \
         `openssl pkey` does"
    )]
    NoKey,
    /// It has several private keys.
    #[error("has {0} private keys: leave only the key of the first certificate")]
    SeveralKeys(usize),
    /// One of its certificates is not one.
    #[error(
        "has something wrong in certificate {number} ({error}): get a new one, and see that it is X.509 version 3"
    )]
    BadCertificate {
        /// Which one it is; the first is 1.
        number: usize,
        /// What is wrong with it.
        error: webpki::Error,
    },
    /// Its private key cannot be used.
    #[error(
        "has a private key that cannot be used ({0}): it must be RSA of 2048 bits or more, P-256, P-384 or Ed25519"
    )]
    BadKey(#[source] Error),
    /// Its private key is another certificate's.
    #[error(
        "has a private key that is not the first certificate's: the server's own certificate must be the first"
    )]
    KeyMismatch,
    /// Others than its owner may read the key, or change it. It can be used all the same.
    #[error(
        "has the mode {0:04o}, which lets others than its owner at its private key: `chmod 600` it"
    )]
    Exposed(u32),
}

/// What the certificate in a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The file.
    pub file: PathBuf,
    /// The names that the certificate is for, in lower case. A wildcard has an asterisk in place of its first label.
    pub names: Vec<String>,
    /// When the certificate is valid.
    pub valid: Range<SystemTime>,
}

/// What is in a file, with a warning if there is one.
pub(crate) struct CertificateFile {
    pub(crate) key: CertifiedKey,
    pub(crate) about: About,
    pub(crate) warning: Option<CertificateError>,
}

/// The content of a file, which may be read by another process than the one that uses it.
#[derive(Clone, PartialEq, Eq)]
pub struct PemFile {
    /// The file.
    pub file: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What is in it.
    pub text: Zeroizing<Vec<u8>>,
}

/// The content is secret.
impl fmt::Debug for PemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PemFile")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

impl PemFile {
    /// Reads a file.
    ///
    /// # Errors
    /// [`CertificateProblem::Unreadable`]
    pub fn read(path: &Path) -> Result<Self, CertificateError> {
        let file = path.to_path_buf();
        match read(path) {
            Ok((text, mode)) => Ok(Self { file, mode, text }),
            Err(error) => Err(CertificateError::File {
                file,
                problem: CertificateProblem::Unreadable(error),
            }),
        }
    }
}

impl CertificateFile {
    pub(crate) fn parse(pem: &PemFile) -> Result<Self, CertificateError> {
        let of_this_file = |problem| CertificateError::File {
            file: pem.file.clone(),
            problem,
        };
        let (key, names, valid) = parse(&pem.text).map_err(of_this_file)?;
        let mode = pem.mode;
        let exposed = (mode & OF_OTHERS != 0).then_some(CertificateProblem::Exposed(mode));
        Ok(Self {
            key,
            about: About {
                file: pem.file.clone(),
                names,
                valid,
            },
            warning: exposed.map(of_this_file),
        })
    }
}

/// Returns a file's content and permissions.
fn read(path: &Path) -> io::Result<(Zeroizing<Vec<u8>>, u32)> {
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    // With room for all of it, the content is not left behind in memory by growing.
    let mut text = Zeroizing::new(Vec::with_capacity(about.len() as usize + 1));
    file.read_to_end(&mut text)?;
    Ok((text, about.permissions().mode() & 0o7777))
}

type Parsed = (CertifiedKey, Vec<String>, Range<SystemTime>);

fn parse(text: &[u8]) -> Result<Parsed, CertificateProblem> {
    let (mut chain, mut keys) = (Vec::new(), Vec::new());
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text) {
        let (kind, der) = section.map_err(CertificateProblem::NotPem)?;
        match kind {
            SectionKind::Certificate => chain.push(CertificateDer::from(der)),
            _ => keys.extend(PrivateKeyDer::from_pem(kind, der)),
        }
    }
    let names = names(&chain)?;
    // A chain with names has a certificate.
    let valid = chain.first().and_then(|der| valid(der));
    let valid = valid.ok_or(CertificateProblem::BadCertificate {
        number: 1,
        error: webpki::Error::BadDerTime,
    })?;
    let key = match (keys.pop(), keys.len()) {
        (None, _) => return Err(CertificateProblem::NoKey),
        (Some(key), 0) => key,
        (Some(_), others) => return Err(CertificateProblem::SeveralKeys(others + 1)),
    };
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
    let certified = certified.map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => CertificateProblem::KeyMismatch,
        error => CertificateProblem::BadKey(error),
    })?;
    Ok((certified, names, valid))
}

/// The names that a chain's first certificate is for (subjectAltName, RFC 5280, section 4.2.1.6), in lower case.
fn names(chain: &[CertificateDer<'_>]) -> Result<Vec<String>, CertificateProblem> {
    let mut names = None;
    for (number, der) in (1..).zip(chain) {
        let certificate = EndEntityCert::try_from(der);
        let certificate =
            certificate.map_err(|error| CertificateProblem::BadCertificate { number, error })?;
        names.get_or_insert_with(|| {
            certificate
                .valid_dns_names()
                .map(str::to_ascii_lowercase)
                .collect()
        });
    }
    names.ok_or(CertificateProblem::NoCertificate)
}

/// The time in which a certificate is valid (RFC 5280, section 4.1.2.5). `None`: it has no such time.
fn valid(der: &CertificateDer<'_>) -> Option<Range<SystemTime>> {
    let validity = Certificate::from_der(der).ok()?.tbs_certificate.validity;
    let time = |time: x509_cert::time::Time| SystemTime::UNIX_EPOCH + time.to_unix_duration();
    Some(time(validity.not_before)..time(validity.not_after))
}
