//! TLS in which both ends must hold known key pairs, and accept nothing else: Ed25519 as raw public keys (RFC 7250).
//! There are no certificates, because there is no authority to sign them and nothing that has to expire.

use std::sync::Arc;

use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerIncompatible, ServerConfig, SignatureScheme,
};

/// An Ed25519 private key in PKCS#8 (RFC 8410, section 7) consists of these bytes and the 32 bytes of the seed.
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The key pair of this end, and the public keys that it accepts.
pub struct Pinned {
    provider: Arc<CryptoProvider>,
    own: Arc<CertifiedKey>,
    believed: Arc<Believed>,
}

impl Pinned {
    /// The key pairs derived from these secrets: this end's own one, and those of which the other end must hold one.
    ///
    /// # Errors
    /// No case is known in which it fails.
    pub fn new(own: [u8; 32], believed: &[[u8; 32]]) -> Result<Self, Error> {
        let provider = Arc::new(ring::default_provider());
        let pair = pair(own)?;
        let public = public(&*pair)?;
        let own = CertifiedKey::new(vec![CertificateDer::from(public)], pair);
        let believed = (believed.iter())
            .map(|seed| public_of(*seed).map(CertificateDer::from))
            .collect::<Result<_, _>>()?;
        let believed = Believed {
            keys: believed,
            provider: Arc::clone(&provider),
        };
        Ok(Self {
            provider,
            own: Arc::new(own),
            believed: Arc::new(believed),
        })
    }

    pub(crate) fn client(&self, alpn: &[u8]) -> Result<ClientConfig, Error> {
        let own = Arc::clone(&self.own);
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&self.believed) as _)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own)));
        config.alpn_protocols = vec![alpn.to_vec()];
        Ok(config)
    }

    pub(crate) fn server(&self, alpn: &[u8]) -> Result<ServerConfig, Error> {
        let own = Arc::clone(&self.own);
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(Arc::clone(&self.believed) as _)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        config.alpn_protocols = vec![alpn.to_vec()];
        Ok(config)
    }
}

fn pair(seed: [u8; 32]) -> Result<Arc<dyn SigningKey>, Error> {
    let pkcs8 = [&PKCS8_ED25519[..], &seed].concat();
    ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8))
}

fn public(pair: &dyn SigningKey) -> Result<Vec<u8>, Error> {
    let key: Option<SubjectPublicKeyInfoDer<'_>> = pair.public_key();
    let key = key.ok_or_else(|| Error::General("a key pair without a public key".into()))?;
    Ok(key.as_ref().to_vec())
}

fn public_of(seed: [u8; 32]) -> Result<Vec<u8>, Error> {
    public(&*pair(seed)?)
}

/// Accepts exactly these raw public keys.
#[derive(Debug)]
struct Believed {
    keys: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Believed {
    fn verify(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        match self.keys.iter().any(|known| known == key) {
            true => Ok(()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
    }
}

impl ServerCertVerifier for Believed {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Believed {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
