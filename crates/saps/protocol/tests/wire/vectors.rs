//! Encodes and decodes the vectors of `vectors/forwarding.txt`.

#[path = "../../../../wire/vectors/reader.rs"]
mod reader;

use std::net::IpAddr;

use baton_saps_protocol::wire::{
    Decoder, Errno, Families, Frame, FrameError, Hello, ListenerTag, Side, SocketOptions, Tag,
    TakenPort, Way,
};
use baton_wire::Endpoint;
use reader::Vector;

#[test]
fn frames_encode_to_these_bytes() {
    for vector in vectors("frame", 27) {
        let bytes = vector.frame().encode(vector.number("epoch"));
        assert_eq!(bytes, vector.bytes("bytes"), "{}", vector.name);
    }
}

#[test]
fn frames_decode_from_these_bytes() {
    for vector in vectors("frame", 27) {
        let (first, decoder) = decode(&vector.bytes("bytes"));
        let expected = (vector.number("epoch"), vector.frame());
        assert_eq!(first, Ok(Some(expected)), "{}", vector.name);
        assert_eq!(decoder.end(), Ok(()), "{}", vector.name);
    }
}

#[test]
fn a_receiver_rejects_for_the_right_reason() {
    for vector in vectors("reject", 29) {
        let (first, decoder) = decode(&vector.bytes("bytes"));
        let error = match first {
            Ok(None) => decoder.end().unwrap_err(),
            Ok(Some(frame)) => panic!("{}: accepted as {frame:?}", vector.name),
            Err(error) => error,
        };
        let reason = match error {
            FrameError::Truncated { .. } => "truncated",
            FrameError::UnknownKind { .. } => "unknown-kind",
            FrameError::Oversized { .. } => "oversized",
            FrameError::Undersized { .. } => "undersized",
            FrameError::NotZero { .. } => "not-zero",
            FrameError::Value { .. } => "value",
            FrameError::Version { .. } => "version",
            other => panic!("{}: {other}", vector.name),
        };
        assert_eq!(reason, vector.field("reason"), "{}", vector.name);
    }
}

fn decode(bytes: &[u8]) -> (Result<Option<(u32, Frame)>, FrameError>, Decoder) {
    let mut decoder = Decoder::default();
    decoder.buffer().extend_from_slice(bytes);
    (decoder.next(), decoder)
}

fn vectors(kind: &str, at_least: usize) -> Vec<Vector> {
    let text = include_str!("../../vectors/forwarding.txt");
    reader::vectors(text, kind, at_least)
}

impl Vector {
    fn endpoint(&self, name: &str) -> Endpoint {
        let (address, port) = self.field(name).split_once(' ').unwrap();
        Endpoint {
            address: address.parse::<IpAddr>().unwrap().into(),
            port: port.parse().unwrap(),
        }
    }

    fn errno(&self) -> Errno {
        Errno::new(self.number("errno")).unwrap()
    }

    fn options(&self) -> SocketOptions {
        let mut options = SocketOptions::default();
        let words = self.field("options").split(' ');
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let number = || Some(value.parse().unwrap());
            match name {
                "nodelay" => options.nodelay = Some(value == "on"),
                "keepalive" => options.keepalive = Some(value == "on"),
                "idle" => options.keep_idle = number(),
                "interval" => options.keep_interval = number(),
                "probes" => options.keep_probes = number(),
                "timeout" => options.user_timeout = number(),
                "send" => options.send_buffer = number(),
                "receive" => options.receive_buffer = number(),
                other => panic!("{}: no option {other}", self.name),
            }
        }
        options
    }

    fn way(&self) -> Way {
        if self.optional("to").is_some() {
            return Way::Out {
                to: self.endpoint("to"),
                options: self.options(),
            };
        }
        Way::In {
            listener: ListenerTag(self.number("listener")),
            peer: self.endpoint("peer"),
            local: self.endpoint("local"),
        }
    }

    fn taken(&self) -> Box<[TakenPort]> {
        let words = self.field("ports").split(' ');
        words
            .filter_map(|word| word.split_once('/'))
            .map(|(port, on)| TakenPort {
                port: port.parse().unwrap(),
                families: families(on),
            })
            .collect()
    }

    fn hello(&self) -> Hello {
        let side = match self.field("side") {
            "io" => Side::Io,
            _ => Side::Application,
        };
        Hello::new(side, self.number("own"), self.field("name")).unwrap()
    }

    fn frame(&self) -> Frame {
        let tag = Tag(self.number("tag"));
        let listener = ListenerTag(tag.0);
        match self.field("kind") {
            "hello" => Frame::Hello(self.hello()),
            "listen" => Frame::Listen {
                listener,
                port: self.number("port"),
                families: families(self.field("families")),
            },
            "listening" => Frame::Listening {
                listener,
                port: self.number("port"),
            },
            "not_listening" => Frame::NotListening {
                listener,
                errno: self.errno(),
            },
            "unlisten" => Frame::Unlisten { listener },
            "make" => Frame::MakeConnection {
                tag,
                limit: self.number("limit"),
                way: self.way(),
            },
            "accepted" => Frame::ConnectionAccepted {
                tag,
                limit: self.number("limit"),
                local: self.endpoint("local"),
            },
            "exception" => Frame::Exception {
                tag,
                errno: self.errno(),
            },
            "message" => Frame::SendMessage {
                tag,
                message: self.bytes("message").into(),
            },
            "available" => Frame::BufferAvailable {
                tag,
                limit: self.number("limit"),
            },
            "shutdown" => Frame::Shutdown { tag },
            "close" => Frame::CloseConnection { tag },
            "closed" => Frame::ConnectionClosed { tag },
            "reset" => Frame::Reset {
                tag,
                errno: self.errno(),
            },
            "options" => Frame::SetOptions {
                tag,
                options: self.options(),
            },
            "taken" => Frame::Taken {
                ports: self.taken(),
            },
            other => panic!("{}: no kind {other}", self.name),
        }
    }
}

fn families(name: &str) -> Families {
    match name {
        "v4" => Families::V4,
        "v6" => Families::V6,
        _ => Families::Both,
    }
}
