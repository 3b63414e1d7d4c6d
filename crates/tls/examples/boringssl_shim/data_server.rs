//! The data servers to which a test's connections come: each has a ticket key of its own, and knows those of the others.

use std::fs;
use std::net::Ipv4Addr;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_tls::{
    Acceptor, CertificateError, CertificateProblem, Certificates, NodeKeys, PemFile, TicketKeyRing,
    TicketKeys,
};
use zeroize::Zeroizing;

use crate::Failure;
use crate::options::{Options, Unsupported};

/// What all data servers of a test know.
pub struct DataServers {
    rings: Vec<TicketKeyRing>,
    now: u64,
}

impl DataServers {
    /// A single data server, or several.
    pub fn new(are_several: bool) -> Result<Self, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(|error| error.to_string())?.as_secs();
        let mut rings = vec![TicketKeyRing::default(); if are_several { 2 } else { 1 }];
        let mut all: Vec<NodeKeys> = Vec::new();
        for ring in &mut rings {
            ring.renew(now);
            all.push(ring.own().cloned().ok_or("no ticket key can be made")?);
        }
        for ring in &mut rings {
            for (number, keys) in (1..).zip(&all) {
                ring.hear(Ipv4Addr::from_bits(number), keys.clone(), now);
            }
        }
        Ok(Self { rings, now })
    }

    /// The acceptor of the data server to which the connection of this number comes.
    pub fn acceptor(&self, number: usize, options: &Options) -> Result<Acceptor, Failure> {
        let keys = TicketKeys::default();
        if options.has_tickets {
            keys.follow(&self.rings[number % self.rings.len()], self.now);
        }
        let alpn: Vec<_> = options.alpn.iter().map(Vec::as_slice).collect();
        Acceptor::new(certificates(options)?, &alpn, keys, b"the service")
            .map_err(|error| Failure::Test(error.to_string()))
    }
}

/// The certificate and its key, which the runner has in two files.
fn certificates(options: &Options) -> Result<Certificates, Failure> {
    if options.certificate.as_os_str().is_empty() {
        return Err(Unsupported("a server without a certificate".to_owned()).into());
    }
    let mut text = Zeroizing::new(Vec::new());
    for file in [&options.certificate, &options.key] {
        let error = |error| format!("{}: {error}", file.display());
        text.extend(fs::read(file).map_err(error)?);
        text.push(b'\n');
    }
    let file = options.certificate.clone();
    let mode = 0o600;
    Certificates::parse([&PemFile { file, mode, text }]).map_err(|error| match error {
        CertificateError::File {
            problem: CertificateProblem::BadKey(_),
            ..
        } => Unsupported("a certificate with a key of another kind".to_owned()).into(),
        other => Failure::Test(other.to_string()),
    })
}
