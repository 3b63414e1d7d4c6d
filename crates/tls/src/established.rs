//! The end of a handshake: rustls' connection becomes a session.

use rustls::ConnectionTrafficSecrets;
use rustls::server::UnbufferedServerConnection;
use zeroize::Zeroizing;

use crate::direction::{Direction, key_and_iv};
use crate::handshake::HandshakeError;
use crate::session::Session;
use crate::suite::{Suite, Version};
use crate::witness::Witness;

/// The suite that a connection has agreed upon.
pub(crate) fn suite_of(connection: &UnbufferedServerConnection) -> Option<Suite> {
    let suite = connection.negotiated_cipher_suite()?.suite();
    Suite::of_number(suite.into())
}

/// Makes the session of a connection whose handshake is done, and whose output has been sent.
pub(crate) fn establish(
    connection: UnbufferedServerConnection,
    witness: &Witness,
) -> Result<Session, HandshakeError> {
    let suite = suite_of(&connection).ok_or(HandshakeError::Unexpected("choose a known suite"))?;
    let alpn = connection.alpn_protocol().map(<[u8]>::to_vec);
    let (secrets, _) = connection.dangerous_into_kernel_connection()?;
    let receiving = direction(suite, &secrets.rx, witness.client.get())?;
    let sending = direction(suite, &secrets.tx, witness.server.get())?;
    let server_name = witness.server_name().map(str::to_owned);
    Ok(Session::new((receiving, sending), server_name, alpn))
}

/// A direction goes on where rustls ends: it has used the keys for its Finished in TLS 1.2, and for tickets in TLS 1.3.
fn direction(
    suite: Suite,
    (sequence, keys): &(u64, ConnectionTrafficSecrets),
    secret: Option<&Zeroizing<Vec<u8>>>,
) -> Result<Direction, HandshakeError> {
    let key = one_behind_the_other(keys).ok_or(HandshakeError::Unexpected("tell known keys"))?;
    let material = match suite.version() {
        Version::Tls12 => key,
        Version::Tls13 => {
            let secret = secret.ok_or(HandshakeError::Unexpected("tell its secrets"))?;
            // A session with other keys than rustls' could not say a word.
            let (its_key, its_iv) = key_and_iv(suite, secret);
            if !its_key.iter().chain(its_iv.iter()).eq(key.iter()) {
                return Err(HandshakeError::Unexpected("tell the secrets of its keys"));
            }
            secret.clone()
        }
    };
    let direction = Direction::new(suite, material, *sequence);
    direction.ok_or(HandshakeError::Unexpected("tell keys of the right length"))
}

/// The key with its IV behind it.
fn one_behind_the_other(keys: &ConnectionTrafficSecrets) -> Option<Zeroizing<Vec<u8>>> {
    match keys {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
            Some(Zeroizing::new([key.as_ref(), iv.as_ref()].concat()))
        }
        _ => None,
    }
}
