//! What a stream carries: a sequence of texts, each about a topic.
//!
//! ```text
//!  topic (1 byte) | length of the text (4 bytes, big-endian) | text
//! ```

use std::fmt;
use std::io;
use std::ops::Deref;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use zeroize::Zeroizing;

/// The longest text, bytes.
pub const LONGEST: usize = 1 << 20;

/// The topic of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The paths whose content is large at the sending node: [`baton_wire::LargePaths`].
    Sizes,
    /// The counts of a data server's doors: [`baton_wire::Tallies`].
    Tallies,
    /// The keys with which the sending data server encrypts TLS session tickets: `baton_tls::NodeKeys`.
    TicketKeys,
}

impl Topic {
    const ALL: [Self; 3] = [Self::Sizes, Self::Tallies, Self::TicketKeys];

    fn number(self) -> u8 {
        match self {
            Self::Sizes => 1,
            Self::Tallies => 2,
            Self::TicketKeys => 3,
        }
    }
}

/// A text. It may be a secret, so it is overwritten when it is dropped, and debug output has only its length. QUIC's own
/// copies, which wait to be encrypted or read, are freed as they are.
#[derive(Clone, PartialEq, Eq)]
pub struct Text(Zeroizing<Vec<u8>>);

impl From<&[u8]> for Text {
    fn from(text: &[u8]) -> Self {
        Self(Zeroizing::new(text.to_vec()))
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

/// The text is too long to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a text of {0} bytes is longer than a frame can be ({LONGEST})")]
pub struct TooLong(pub usize);

/// Appends a frame.
///
/// # Errors
/// The text is [`TooLong`], or the stream has ended.
pub(crate) async fn write(
    to: &mut (impl AsyncWrite + Unpin),
    topic: Topic,
    text: &[u8],
) -> io::Result<()> {
    if text.len() > LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            TooLong(text.len()),
        ));
    }
    to.write_u8(topic.number()).await?;
    to.write_u32(text.len() as u32).await?; // at most LONGEST
    to.write_all(text).await
}

/// Reads the next frame; `None` at the end of the stream. The topic is `None` if only a later version knows it.
///
/// # Errors
/// The stream broke, ended within a frame, or holds something that is not a frame.
pub(crate) async fn read(
    from: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<(Option<Topic>, Text)>> {
    let mut number = [0];
    if from.read(&mut number).await? == 0 {
        return Ok(None);
    }
    let length = from.read_u32().await? as usize;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, TooLong(length)));
    }
    let mut text = Zeroizing::new(vec![0; length]);
    from.read_exact(&mut text).await?;
    let [number] = number;
    let topic = (Topic::ALL.into_iter()).find(|topic| topic.number() == number);
    Ok(Some((topic, Text(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(mut bytes: &[u8]) -> io::Result<Vec<(Option<Topic>, Vec<u8>)>> {
        let mut frames = Vec::new();
        while let Some((topic, text)) = read(&mut bytes).await? {
            frames.push((topic, text.to_vec()));
        }
        Ok(frames)
    }

    #[tokio::test]
    async fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        let long = vec![7; LONGEST];
        for text in [&b""[..], b"one", &long] {
            write(&mut bytes, Topic::Sizes, text).await.unwrap();
        }
        assert_eq!(bytes[..13], *b"\x01\0\0\0\0\x01\0\0\0\x03one");
        let texts: Vec<_> = (all(&bytes).await.unwrap().into_iter())
            .map(|(topic, text)| {
                assert_eq!(topic, Some(Topic::Sizes));
                text
            })
            .collect();
        assert_eq!(texts, [b"".to_vec(), b"one".to_vec(), long]);
    }

    #[test]
    fn topics_are_told_apart() {
        for (one, other) in Topic::ALL.iter().zip(&Topic::ALL[1..]) {
            assert!(one.number() < other.number());
        }
    }

    #[tokio::test]
    async fn a_topic_of_a_later_version_is_passed_over() {
        let frames = all(b"\xff\0\0\0\x02no\x01\0\0\0\x03yes").await.unwrap();
        assert_eq!(
            frames,
            [
                (None, b"no".to_vec()),
                (Some(Topic::Sizes), b"yes".to_vec())
            ]
        );
    }

    #[tokio::test]
    async fn what_is_no_frame_is_an_error() {
        for (bytes, kind) in [
            (&b"\x01"[..], io::ErrorKind::UnexpectedEof),
            (b"\x01\0\0\0", io::ErrorKind::UnexpectedEof),
            (b"\x01\0\0\0\x02n", io::ErrorKind::UnexpectedEof),
            (b"\x01\0\x10\0\x01", io::ErrorKind::InvalidData),
            (b"\x01\xff\xff\xff\xff", io::ErrorKind::InvalidData),
        ] {
            assert_eq!(all(bytes).await.unwrap_err().kind(), kind, "{bytes:?}");
        }
        let long = vec![0; LONGEST + 1];
        let refused = write(&mut Vec::new(), Topic::Sizes, &long).await;
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
