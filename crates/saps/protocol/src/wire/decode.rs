//! Decodes bytes into frames.

use bytes::{Buf, Bytes, BytesMut};

use super::{
    Errno, Families, Frame, FrameError, HEADER_BYTES, Header, Hello, Kind, ListenerTag, Side,
    SocketOptions, Tag, TakenPort, VERSION, Way,
};
use baton_wire::{Address, Endpoint};

/// Cuts a channel's bytes into frames. Messages are not copied: they stay in the memory that they were read into.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    header: Option<Header>,
}

impl Decoder {
    /// The buffer to whose end the channel's next bytes must be appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// How many more bytes must arrive, at least, before there is another frame.
    pub fn missing(&self) -> usize {
        let whole = (self.header).map_or(HEADER_BYTES, |header| header.length as usize);
        whole.saturating_sub(self.buffer.len())
    }

    /// The next frame and the epoch that it carries, or `None` if more bytes must arrive.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are no frame. No frames can be read after that.
    #[allow(
        clippy::should_implement_trait,
        reason = "it ends for now, not for good"
    )]
    pub fn next(&mut self) -> Result<Option<(u32, Frame)>, FrameError> {
        let header = match self.header {
            Some(header) => header,
            None => {
                let Some(bytes) = self.buffer.first_chunk() else {
                    return Ok(None);
                };
                let header = Header::decode(*bytes)?;
                self.buffer.advance(HEADER_BYTES);
                *self.header.insert(header)
            }
        };
        if self.missing() > 0 {
            return Ok(None);
        }
        let body = self.buffer.split_to(header.length as usize).freeze();
        self.header = None;
        let frame = Frame::decode(header, body)?;
        Ok(Some((header.epoch, frame)))
    }

    /// Checks that the channel may end at this point, which is only between two frames.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] if it ends within a frame.
    pub fn end(&self) -> Result<(), FrameError> {
        if self.header.is_none() && self.buffer.is_empty() {
            return Ok(());
        }
        let missing = self.missing();
        Err(FrameError::Truncated { missing })
    }
}

impl Frame {
    /// Decodes the frame of this header and the body that follows it.
    ///
    /// # Errors
    /// [`FrameError`] if the body does not fit the header or the frame's kind.
    pub fn decode(header: Header, body: Bytes) -> Result<Self, FrameError> {
        let whole = header.length as usize;
        if body.len() < whole {
            let missing = whole - body.len();
            return Err(FrameError::Truncated { missing });
        }
        let mut body = Body {
            kind: header.kind,
            bytes: body.slice(..whole),
        };
        let frame = body.frame(header)?;
        match body.bytes.len() {
            0 => Ok(frame),
            rest => Err(FrameError::Oversized {
                kind: header.kind,
                length: header.length,
                max: whole - rest,
            }),
        }
    }
}

/// The part of a body that has not been read.
struct Body {
    kind: Kind,
    bytes: Bytes,
}

impl Body {
    fn frame(&mut self, header: Header) -> Result<Frame, FrameError> {
        let tag = Tag(header.tag);
        let listener = ListenerTag(header.tag);
        Ok(match header.kind {
            Kind::Hello => Frame::Hello(self.hello(header)?),
            Kind::Listen => {
                let (port, families) = self.port()?;
                Frame::Listen {
                    listener,
                    port,
                    families,
                }
            }
            Kind::Listening => Frame::Listening {
                listener,
                port: self.u16()?,
            },
            Kind::NotListening => Frame::NotListening {
                listener,
                errno: self.errno()?,
            },
            Kind::Unlisten => Frame::Unlisten { listener },
            Kind::MakeConnection => Frame::MakeConnection {
                tag,
                limit: self.u64()?,
                way: self.way()?,
            },
            Kind::ConnectionAccepted => Frame::ConnectionAccepted {
                tag,
                limit: self.u64()?,
                local: self.endpoint()?,
            },
            Kind::Exception => Frame::Exception {
                tag,
                errno: self.errno()?,
            },
            Kind::SendMessage => Frame::SendMessage {
                tag,
                message: std::mem::take(&mut self.bytes),
            },
            Kind::BufferAvailable => Frame::BufferAvailable {
                tag,
                limit: self.u64()?,
            },
            Kind::Shutdown => Frame::Shutdown { tag },
            Kind::CloseConnection => Frame::CloseConnection { tag },
            Kind::ConnectionClosed => Frame::ConnectionClosed { tag },
            Kind::Reset => Frame::Reset {
                tag,
                errno: self.errno()?,
            },
            Kind::SetOptions => Frame::SetOptions {
                tag,
                options: self.options()?,
            },
            Kind::Taken => Frame::Taken {
                ports: self.taken(header.tag)?,
            },
        })
    }

    fn port(&mut self) -> Result<(u16, Families), FrameError> {
        let port = self.u16()?;
        let families = match self.u8()? {
            1 => Families::V4,
            2 => Families::V6,
            3 => Families::Both,
            other => return Err(self.value("families", other)),
        };
        self.zeros::<1>()?;
        Ok((port, families))
    }

    fn taken(&mut self, tag: u32) -> Result<Box<[TakenPort]>, FrameError> {
        if tag != 0 {
            return Err(FrameError::NotZero { kind: self.kind });
        }
        let mut ports = Vec::new();
        while !self.bytes.is_empty() {
            let (port, families) = self.port()?;
            ports.push(TakenPort { port, families });
        }
        Ok(ports.into())
    }

    fn hello(&mut self, header: Header) -> Result<Hello, FrameError> {
        let version = self.u16()?;
        if version != VERSION {
            return Err(FrameError::Version { found: version });
        }
        if (header.epoch, header.tag) != (0, 0) {
            return Err(FrameError::NotZero { kind: self.kind });
        }
        let side = match self.u8()? {
            1 => Side::Application,
            2 => Side::Io,
            other => return Err(self.value("side", other)),
        };
        self.zeros::<1>()?;
        let epoch = self.u32()?;
        let name = std::mem::take(&mut self.bytes);
        let is_outside = |byte: &u8| !byte.is_ascii_graphic();
        let strange = name.iter().copied().find(is_outside).unwrap_or_default();
        (std::str::from_utf8(&name).ok())
            .and_then(|name| Hello::new(side, epoch, name))
            .ok_or_else(|| self.value("character of a name", strange))
    }

    fn way(&mut self) -> Result<Way, FrameError> {
        let way = self.u8()?;
        self.zeros::<3>()?;
        match way {
            1 => Ok(Way::In {
                listener: ListenerTag(self.u32()?),
                peer: self.endpoint()?,
                local: self.endpoint()?,
            }),
            2 => Ok(Way::Out {
                to: self.endpoint()?,
                options: self.options()?,
            }),
            other => Err(self.value("way", other)),
        }
    }

    fn options(&mut self) -> Result<SocketOptions, FrameError> {
        let bytes = self.take()?;
        SocketOptions::decode(bytes).ok_or(FrameError::NotZero { kind: self.kind })
    }

    fn endpoint(&mut self) -> Result<Endpoint, FrameError> {
        Ok(Endpoint {
            address: Address::from_octets(self.take()?),
            port: self.u16()?,
        })
    }

    fn errno(&mut self) -> Result<Errno, FrameError> {
        let number = self.u16()?;
        Errno::new(number).ok_or_else(|| self.value("error number", number))
    }

    fn zeros<const N: usize>(&mut self) -> Result<(), FrameError> {
        match self.take::<N>()? == [0; N] {
            true => Ok(()),
            false => Err(FrameError::NotZero { kind: self.kind }),
        }
    }

    fn u8(&mut self) -> Result<u8, FrameError> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, FrameError> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, FrameError> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, FrameError> {
        self.take().map(u64::from_be_bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        match self.bytes.first_chunk() {
            Some(bytes) => {
                let bytes = *bytes;
                self.bytes.advance(N);
                Ok(bytes)
            }
            None => Err(FrameError::Truncated {
                missing: N - self.bytes.len(),
            }),
        }
    }

    fn value(&self, field: &'static str, value: impl Into<u32>) -> FrameError {
        FrameError::Value {
            kind: self.kind,
            field,
            value: value.into(),
        }
    }
}
