//! Follows the body of an HTTP/1 message to its end (RFC 9112, sections 6 and 7). No I/O.
//!
//! A body in chunks is read strictly: every line ends with CR LF, and a size has nothing but hexadecimal digits. Where
//! two programs disagree about the end of a body, a client could hide a request in it.

/// The rest of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes are still to come.
    Bytes(u64),
    /// Chunks are still to come.
    Chunked(Chunks),
    /// The body ends with its connection.
    UntilEnd,
}

/// The body is not made as RFC 9112 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadBody;

/// A place in a body that comes in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunks {
    /// In the size of a chunk, of which this many digits have come.
    Size { size: u64, digits: u8 },
    /// In the rest of the line that gives the size.
    Extension { size: u64 },
    /// Before the line feed behind the size.
    SizeEnds { size: u64 },
    /// In a chunk of which this many bytes are still to come.
    Data { left: u64 },
    /// Before the carriage return behind a chunk.
    DataReturn,
    /// Before the line feed behind a chunk.
    DataEnds,
    /// At the beginning of a trailer line.
    Trailer,
    /// In a trailer line.
    TrailerLine,
    /// Before the line feed behind a trailer line.
    TrailerEnds,
    /// Before the last line feed.
    LastEnds,
    /// At the end of the body.
    Done,
}

/// Larger sizes would not fit into 64 bits.
const DIGITS_MOST: u8 = 16;

impl Body {
    /// A body in chunks, of which nothing has come.
    pub fn chunked() -> Self {
        Self::Chunked(Chunks::Size { size: 0, digits: 0 })
    }

    /// Whether all of the body has come. The end of a body that ends with its connection is not known here.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Bytes(0) | Self::Chunked(Chunks::Done))
    }

    /// Follows the bytes that have come, and returns how many of them belong to the body.
    ///
    /// # Errors
    /// The body is in chunks, and these bytes are none.
    pub fn follow(&mut self, bytes: &[u8]) -> Result<usize, BadBody> {
        match self {
            Self::Bytes(left) => Ok(take(left, bytes.len())),
            Self::Chunked(chunks) => chunks.follow(bytes),
            Self::UntilEnd => Ok(bytes.len()),
        }
    }
}

/// Takes up to `left` of `bytes` bytes, and returns how many.
fn take(left: &mut u64, bytes: usize) -> usize {
    // The smaller of the two is at most `bytes`, so it fits.
    let taken = (*left).min(bytes as u64);
    *left -= taken;
    taken as usize
}

impl Chunks {
    fn follow(&mut self, bytes: &[u8]) -> Result<usize, BadBody> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::Done {
            if let Self::Data { left } = self {
                at += take(left, bytes.len() - at);
                if *left == 0 {
                    *self = Self::DataReturn;
                }
                continue;
            }
            *self = self.after(bytes[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// The place behind this byte, which belongs to no chunk's data.
    fn after(self, byte: u8) -> Result<Self, BadBody> {
        let behind_size = |size| match size {
            0 => Self::Trailer,
            left => Self::Data { left },
        };
        Ok(match (self, byte) {
            (Self::Size { digits: 1.., size }, b'\r') => Self::SizeEnds { size },
            (Self::Size { digits: 1.., size }, b';' | b' ' | b'\t') => Self::Extension { size },
            (Self::Size { size, digits }, _) if digits < DIGITS_MOST => {
                let digit = (byte as char).to_digit(16).ok_or(BadBody)?;
                Self::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (Self::Extension { size }, b'\r') => Self::SizeEnds { size },
            (Self::Extension { .. }, b'\t' | b' '..) => self,
            (Self::SizeEnds { size }, b'\n') => behind_size(size),
            (Self::DataReturn, b'\r') => Self::DataEnds,
            (Self::DataEnds, b'\n') => Self::Size { size: 0, digits: 0 },
            (Self::Trailer, b'\r') => Self::LastEnds,
            (Self::TrailerLine, b'\r') => Self::TrailerEnds,
            (Self::Trailer | Self::TrailerLine, b'\t' | b' '..) => Self::TrailerLine,
            (Self::TrailerEnds, b'\n') => Self::Trailer,
            (Self::LastEnds, b'\n') => Self::Done,
            _ => return Err(BadBody),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows the text in pieces of this length. Returns how much of it belongs to the body.
    fn followed(mut body: Body, text: &str, piece: usize) -> Result<(usize, bool), BadBody> {
        let mut all = 0;
        for piece in text.as_bytes().chunks(piece) {
            let taken = body.follow(piece)?;
            all += taken;
            if taken < piece.len() {
                break;
            }
        }
        Ok((all, body.is_whole()))
    }

    #[test]
    fn a_body_ends_where_its_message_says() {
        for (body, text) in [
            (Body::Bytes(5), "hello"),
            (Body::chunked(), "0\r\n\r\n"),
            (Body::chunked(), "5\r\nhello\r\n0\r\n\r\n"),
            (
                Body::chunked(),
                "00005;a=\"b\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX: y\r\nZ: w\r\n\r\n",
            ),
            (Body::chunked(), "5 \r\nhello\r\n0 ;a\r\n\r\n"),
        ] {
            let length = text.len();
            let next = format!("{text}GET / HTTP/1.1\r\n\r\n");
            for piece in 1..next.len() {
                assert_eq!(followed(body, &next, piece), Ok((length, true)), "{text:?}");
                let cut = &text[..length - 1];
                assert_eq!(followed(body, cut, piece), Ok((length - 1, false)));
            }
        }
        assert!(Body::Bytes(0).is_whole());
        assert_eq!(followed(Body::UntilEnd, "hello", 2), Ok((5, false)));
    }

    #[test]
    fn what_others_could_read_differently_is_no_body() {
        for text in [
            "\r\n",
            "5\nhello\r\n",
            "5\r\nhello0\r\n",
            "5\r\nhello\n",
            "x\r\n",
            "0x5\r\n",
            "+5\r\n",
            "-1\r\n",
            " 5\r\n",
            "10000000000000000\r\n",
            "5;a\nb\r\n",
            "5\rX",
            "0\r\n\n",
            "0\r\nX: y\n\r\n",
            "0\r\nX\0: y\r\n\r\n",
        ] {
            for piece in 1..=text.len() {
                assert_eq!(
                    followed(Body::chunked(), text, piece),
                    Err(BadBody),
                    "{text:?}"
                );
            }
        }
        assert!(followed(Body::chunked(), "ffffffffffffffff\r\nx", 3).is_ok());
    }
}
