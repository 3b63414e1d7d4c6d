//! A client of rustls in memory, and what it talks to.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io::{Cursor, ErrorKind, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use baton_tls::{
    Acceptor, Certificates, Handshake, HandshakeError, NodeKeys, Progress, Received, Session,
    TicketKeyRing, TicketKeys,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme,
    SupportedCipherSuite,
};
use tempfile::TempDir;

/// A certificate with an RSA key, and the key as PKCS#8.
pub const RSA: &str = include_str!("../data/rsa.pem");

/// A certificate with a P-256 key for these names, and the key as PKCS#8.
pub fn ecdsa(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names)
        .unwrap()
        .self_signed(&key)
        .unwrap();
    certificate.pem() + &key.serialize_pem()
}

/// Files with these contents, as long as the directory lives.
pub fn files(contents: &[&str]) -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let paths = contents.iter().enumerate().map(|(number, content)| {
        let path = directory.path().join(format!("{number}.pem"));
        std::fs::write(&path, content).unwrap();
        path
    });
    let paths = paths.collect();
    (directory, paths)
}

pub fn certificates(contents: &[&str]) -> Certificates {
    let (_directory, paths) = files(contents);
    Certificates::load(&paths).unwrap()
}

/// The keys of a node that has made the key with this number, made of a secret that follows from it.
pub fn tickets(number: u8) -> TicketKeys {
    let keys = TicketKeys::default();
    keys.follow(&ticket_ring(number, &[]), 0);
    keys
}

/// The ring of a node that has made the first of these keys, and has heard of the others.
pub fn ticket_ring(own: u8, others: &[u8]) -> TicketKeyRing {
    let mut ring = TicketKeyRing::default();
    for (at, number) in [own].iter().chain(others).enumerate() {
        let key = [&[*number; 8][..], &[0; 8], &[*number; 32]].concat();
        let node = [0, 0, 0, at as u8].into();
        ring.hear(node, NodeKeys::read(&key).unwrap(), 0);
    }
    ring
}

/// An acceptor with a certificate of either kind of key, both for `any.example`.
pub fn acceptor() -> Acceptor {
    acceptor_of(tickets(1), b"a")
}

/// The same of a service with these ticket keys.
pub fn acceptor_of(tickets: TicketKeys, service: &[u8]) -> Acceptor {
    let certificates = certificates(&[&ecdsa(&["any.example"]), RSA]);
    Acceptor::new(certificates, &[], tickets, service).unwrap()
}

/// The suites that both have.
pub fn suites() -> Vec<SupportedCipherSuite> {
    ring::ALL_CIPHER_SUITES.to_vec()
}

/// The name under which [`acceptor`] has a certificate that suits a suite.
pub fn name_for(suite: SupportedCipherSuite) -> &'static str {
    match format!("{suite:?}").contains("RSA") {
        true => "rsa.example",
        false => "any.example",
    }
}

/// Settings of a client that has only this suite, and that takes any certificate whose key signs.
pub fn client_config(suites: &[SupportedCipherSuite]) -> ClientConfig {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: suites.to_vec(),
        ..ring::default_provider()
    });
    let versions: Vec<_> = [&rustls::version::TLS12, &rustls::version::TLS13]
        .into_iter()
        .filter(|version| suites.iter().any(|suite| suite.version() == *version))
        .collect();
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    config
}

pub fn any_certificate() -> Arc<dyn ServerCertVerifier> {
    Arc::new(AnyCertificate(Arc::new(ring::default_provider())))
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A client.
pub struct Client {
    pub tls: ClientConnection,
    /// The data that has come.
    pub received: Vec<u8>,
    /// The server has sent close_notify.
    pub is_closed: bool,
}

impl Client {
    pub fn new(config: &Arc<ClientConfig>, name: &str) -> Self {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut tls = ClientConnection::new(Arc::clone(config), name).unwrap();
        tls.set_buffer_limit(None);
        Self {
            tls,
            received: Vec::new(),
            is_closed: false,
        }
    }

    /// What it has to send.
    pub fn output(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut output).unwrap();
        }
        output
    }

    pub fn say(&mut self, data: &[u8]) {
        self.tls.writer().write_all(data).unwrap();
    }

    /// Takes what the server has sent.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut bytes = Cursor::new(bytes);
        while (bytes.position() as usize) < bytes.get_ref().len() && !self.is_closed {
            self.tls.read_tls(&mut bytes).unwrap();
            self.is_closed = self.tls.process_new_packets()?.peer_has_closed();
            match self.tls.reader().read_to_end(&mut self.received) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(_) => assert!(self.is_closed),
                Err(error) => panic!("{error}"),
            }
        }
        Ok(())
    }
}

/// Brings a handshake to its end. What the client sent behind it is in the vector.
pub fn shake_hands(
    acceptor: &Acceptor,
    client: &mut Client,
) -> Result<(Session, Vec<u8>), HandshakeError> {
    let mut handshake = Handshake::new(acceptor);
    let mut input = Vec::new();
    for _ in 0..10 {
        let mut output = Vec::new();
        input.extend(client.output());
        let progress = handshake.advance(&mut input, &mut output);
        client.take(&output).unwrap();
        if let Progress::Done(session) = progress? {
            return Ok((session, input));
        }
    }
    panic!("the handshake goes on and on");
}

/// A client with an established session.
pub struct Pair {
    pub client: Client,
    pub session: Session,
    /// What the client has sent and the session has not taken.
    pub input: Vec<u8>,
    /// The data that has come from the client.
    pub received: Vec<u8>,
}

impl Pair {
    pub fn new(suite: SupportedCipherSuite) -> Self {
        Self::of(
            &acceptor(),
            &Arc::new(client_config(&[suite])),
            name_for(suite),
        )
    }

    pub fn of(acceptor: &Acceptor, config: &Arc<ClientConfig>, name: &str) -> Self {
        let mut client = Client::new(config, name);
        let (session, input) = shake_hands(acceptor, &mut client).unwrap();
        assert!(!client.tls.is_handshaking());
        Self {
            client,
            session,
            input,
            received: Vec::new(),
        }
    }

    /// The session takes this, after what has come before.
    pub fn deliver(&mut self, bytes: &[u8]) -> Received {
        let mut output = Vec::new();
        self.input.extend(bytes);
        let received = self
            .session
            .receive(&mut self.input, &mut self.received, &mut output)
            .unwrap();
        self.client.take(&output).unwrap();
        received
    }

    /// The client says this, and the session hears it.
    pub fn ask(&mut self, data: &[u8]) {
        self.client.say(data);
        let bytes = self.client.output();
        self.deliver(&bytes);
        assert!(self.input.is_empty());
        assert!(
            self.received == data,
            "{} bytes of {}",
            self.received.len(),
            data.len()
        );
        self.received.clear();
    }

    /// The session says this, and the client hears it.
    pub fn answer(&mut self, data: &[u8]) {
        let mut output = Vec::new();
        self.session.send(data, &mut output).unwrap();
        self.client.take(&output).unwrap();
        assert!(
            self.client.received == data,
            "{} bytes of {}",
            self.client.received.len(),
            data.len()
        );
        self.client.received.clear();
    }

    /// The session goes on at another machine.
    pub fn migrate(self) -> Self {
        let session = Session::import(&self.session.export()).unwrap();
        Self { session, ..self }
    }
}
