//! Encodes frames into bytes.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Families, Frame, HEADER_BYTES, Header, Kind, MAX_TAKEN, Side, VERSION, Way};
use baton_wire::Endpoint;

impl Frame {
    /// Appends the frame without its [`Frame::payload`], which must follow at once. `epoch` is the one that the
    /// receiver gave.
    pub fn encode_head(&self, epoch: u32, out: &mut BytesMut) {
        let start = out.len();
        out.put_bytes(0, HEADER_BYTES);
        let (kind, tag) = self.body(out);
        let body = out.len() - start - HEADER_BYTES;
        let length = body + self.payload().map_or(0, Bytes::len);
        let header = Header {
            kind,
            epoch,
            tag,
            // The longest body is a message of 64 KB.
            length: length as u32,
        };
        out[start..start + HEADER_BYTES].copy_from_slice(&header.encode());
    }

    /// The bytes of a message, which can be sent without being copied. `None` for other frames.
    pub fn payload(&self) -> Option<&Bytes> {
        match self {
            Self::SendMessage { message, .. } => Some(message),
            _ => None,
        }
    }

    /// The bytes of the whole frame.
    pub fn encode(&self, epoch: u32) -> BytesMut {
        let mut out = BytesMut::new();
        self.encode_head(epoch, &mut out);
        out.extend_from_slice(self.payload().map_or(&[], |payload| payload));
        out
    }

    /// Appends the body without the payload. Returns the kind and the tag for the header.
    fn body(&self, out: &mut BytesMut) -> (Kind, u32) {
        match self {
            Self::Hello(hello) => {
                out.put_u16(VERSION);
                out.put_u8(match hello.side {
                    Side::Application => 1,
                    Side::Io => 2,
                });
                out.put_u8(0);
                out.put_u32(hello.epoch);
                out.put_slice(hello.name().as_bytes());
                (Kind::Hello, 0)
            }
            Self::Listen {
                listener,
                port,
                families,
            } => {
                put_port(out, *port, *families);
                (Kind::Listen, listener.0)
            }
            Self::Listening { listener, port } => {
                out.put_u16(*port);
                (Kind::Listening, listener.0)
            }
            Self::NotListening { listener, errno } => {
                out.put_u16(errno.number());
                (Kind::NotListening, listener.0)
            }
            Self::Unlisten { listener } => (Kind::Unlisten, listener.0),
            Self::MakeConnection { tag, limit, way } => {
                out.put_u64(*limit);
                put_way(out, way);
                (Kind::MakeConnection, tag.0)
            }
            Self::ConnectionAccepted { tag, limit, local } => {
                out.put_u64(*limit);
                put_endpoint(out, *local);
                (Kind::ConnectionAccepted, tag.0)
            }
            Self::Exception { tag, errno } => {
                out.put_u16(errno.number());
                (Kind::Exception, tag.0)
            }
            Self::SendMessage { tag, .. } => (Kind::SendMessage, tag.0),
            Self::BufferAvailable { tag, limit } => {
                out.put_u64(*limit);
                (Kind::BufferAvailable, tag.0)
            }
            Self::Shutdown { tag } => (Kind::Shutdown, tag.0),
            Self::CloseConnection { tag } => (Kind::CloseConnection, tag.0),
            Self::ConnectionClosed { tag } => (Kind::ConnectionClosed, tag.0),
            Self::Reset { tag, errno } => {
                out.put_u16(errno.number());
                (Kind::Reset, tag.0)
            }
            Self::SetOptions { tag, options } => {
                out.put_slice(&options.encode());
                (Kind::SetOptions, tag.0)
            }
            Self::Taken { ports } => {
                for taken in ports.iter().take(MAX_TAKEN) {
                    put_port(out, taken.port, taken.families);
                }
                (Kind::Taken, 0)
            }
        }
    }
}

fn put_port(out: &mut BytesMut, port: u16, families: Families) {
    out.put_u16(port);
    out.put_u8(match families {
        Families::V4 => 1,
        Families::V6 => 2,
        Families::Both => 3,
    });
    out.put_u8(0);
}

fn put_way(out: &mut BytesMut, way: &Way) {
    match way {
        Way::In {
            listener,
            peer,
            local,
        } => {
            out.put_u32(1 << 24);
            out.put_u32(listener.0);
            put_endpoint(out, *peer);
            put_endpoint(out, *local);
        }
        Way::Out { to, options } => {
            out.put_u32(2 << 24);
            put_endpoint(out, *to);
            out.put_slice(&options.encode());
        }
    }
}

fn put_endpoint(out: &mut BytesMut, endpoint: Endpoint) {
    out.put_slice(&endpoint.address.octets());
    out.put_u16(endpoint.port);
}
