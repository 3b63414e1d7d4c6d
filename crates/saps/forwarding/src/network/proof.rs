//! Two ends of a TCP connection prove to each other that they know the cluster key, without sending the key.
//!
//! ```text
//!  node -> I/O server   "baton/1\n" | nonce N (32) | HMAC(K, "greeting" N)
//!  I/O server -> node   nonce S (32) | HMAC(K, "I/O server" N S)
//!  node -> I/O server   HMAC(K, "application node" N S)
//! ```
//!
//! The first message shows the I/O server which of its keys the node has. A stranger's message gets no answer, so a
//! stranger learns nothing by asking. Each proof names its side and contains a number that the other end has just
//! chosen, so no proof can be reflected or replayed. The proofs authenticate the ends when the link is made, and no
//! more: the bytes that follow are neither encrypted nor tagged, so anyone who can change packets between the nodes
//! can change them.

use std::io;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::keys::NetworkKeys;

const MAGIC: &[u8; 8] = b"baton/1\n";
const LABEL: &str = "link over TCP";
const BYTES: usize = 32;

/// Proves the key as the application node.
pub(super) async fn ask<S>(stream: &mut S, keys: &NetworkKeys) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let key = hmac::Key::new(hmac::HMAC_SHA256, &keys.current(LABEL));
    let node = nonce()?;
    let greeting = hmac::sign(&key, &[b"greeting", &node[..]].concat());
    let first = [MAGIC, &node[..], greeting.as_ref()].concat();
    stream.write_all(&first).await?;
    let answer = async { io::Result::Ok([read(stream).await?, read(stream).await?]) };
    let [server, proof] = answer.await.map_err(refused)?;
    let said = said("I/O server", &node, &server);
    hmac::verify(&key, &said, &proof).map_err(|_| stranger("the I/O server"))?;
    let proof = hmac::sign(&key, &self::said("application node", &node, &server));
    stream.write_all(proof.as_ref()).await
}

/// Proves the key as the I/O server.
pub(super) async fn answer<S>(stream: &mut S, keys: &NetworkKeys) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic).await?;
    if magic != *MAGIC {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the program that connected does not speak the protocol of an application node",
        ));
    }
    let [node, greeting] = [read(stream).await?, read(stream).await?];
    let said_first = [b"greeting", &node[..]].concat();
    let key = (keys.believed(LABEL))
        .map(|key| hmac::Key::new(hmac::HMAC_SHA256, &key))
        .find(|key| hmac::verify(key, &said_first, &greeting).is_ok())
        .ok_or_else(|| stranger("the node that connected"))?;
    let server = nonce()?;
    let proof = hmac::sign(&key, &said("I/O server", &node, &server));
    stream
        .write_all(&[&server[..], proof.as_ref()].concat())
        .await?;
    let proof = read(stream).await?;
    let said = said("application node", &node, &server);
    hmac::verify(&key, &said, &proof).map_err(|_| stranger("the node that connected"))
}

fn said(side: &str, node: &[u8; BYTES], server: &[u8; BYTES]) -> Vec<u8> {
    [side.as_bytes(), node, server].concat()
}

fn nonce() -> io::Result<[u8; BYTES]> {
    let mut nonce = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut nonce);
    filled.map_err(|_| io::Error::other("the kernel gives no random numbers"))?;
    Ok(nonce)
}

async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Explains an end without an answer: an I/O server that does not accept the greeting sends none.
fn refused(error: io::Error) -> io::Error {
    use io::ErrorKind::{ConnectionReset, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | ConnectionReset => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the other end refuses this node: it has another cluster key, or is no I/O server; compare key_file and [forwarding] port on both nodes",
        ),
        _ => error,
    }
}

fn stranger(who: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{who} does not know this cluster's key; compare key_file on both nodes"),
    )
}

#[cfg(test)]
mod tests {
    use baton_wire::ClusterKey;

    use super::*;

    fn key(byte: u8) -> ClusterKey {
        ClusterKey::from_bytes([byte; 32]).unwrap()
    }

    async fn meet(node: NetworkKeys, server: NetworkKeys) -> (io::Result<()>, io::Result<()>) {
        let (mut one, mut two) = tokio::io::duplex(1024);
        let node = async move { ask(&mut one, &node).await };
        let server = async move { answer(&mut two, &server).await };
        tokio::join!(node, server)
    }

    #[tokio::test]
    async fn the_same_key_opens() {
        let keys = NetworkKeys::new(&key(1), None);
        let (node, server) = meet(keys.clone(), keys).await;
        node.unwrap();
        server.unwrap();
    }

    #[tokio::test]
    async fn the_key_before_opens_as_well() {
        let old = NetworkKeys::new(&key(1), None);
        let new = NetworkKeys::new(&key(2), Some(&key(1)));
        let (node, server) = meet(old, new).await;
        node.unwrap();
        server.unwrap();
    }

    #[tokio::test]
    async fn another_key_does_not_and_is_not_answered() {
        let (one, two) = (
            NetworkKeys::new(&key(1), None),
            NetworkKeys::new(&key(2), None),
        );
        let (node, server) = meet(one, two).await;
        assert_eq!(server.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        // The node gets no answer, which is what a node with another key sees.
        assert_eq!(node.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[tokio::test]
    async fn a_recorded_node_does_not_open() {
        let keys = NetworkKeys::new(&key(1), None);
        let (mut near, mut far) = tokio::io::duplex(1024);
        let (mut relay, mut server) = tokio::io::duplex(1024);
        let (asker, answerer) = (keys.clone(), keys.clone());
        let asking = tokio::spawn(async move { ask(&mut near, &asker).await });
        let answering = tokio::spawn(async move { answer(&mut server, &answerer).await });
        let mut first = [0; 72];
        far.read_exact(&mut first).await.unwrap();
        relay.write_all(&first).await.unwrap();
        let mut second = [0; 64];
        relay.read_exact(&mut second).await.unwrap();
        far.write_all(&second).await.unwrap();
        let mut third = [0; 32];
        far.read_exact(&mut third).await.unwrap();
        asking.await.unwrap().unwrap();
        relay.write_all(&third).await.unwrap();
        answering.await.unwrap().unwrap();

        let (mut replay, mut server) = tokio::io::duplex(1024);
        let answering = tokio::spawn(async move { answer(&mut server, &keys).await });
        replay.write_all(&first).await.unwrap();
        replay.write_all(&third).await.unwrap();
        let error = answering.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
