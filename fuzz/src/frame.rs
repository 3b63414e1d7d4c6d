//! Frames of TCP over IPv4, read and written without the code under test: by where RFC 791 and RFC 9293 put each field.

/// Where IP begins.
const IP: usize = 14;

/// Flags of TCP.
pub const FIN: u8 = 1;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
pub const URG: u8 = 32;

/// A frame that is known to be one of TCP over IPv4.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    tcp: usize,
    end: usize,
}

impl<'a> Frame<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let header = usize::from(bytes[IP] & 15) * 4;
        Self {
            bytes,
            tcp: IP + header,
            end: IP + usize::from(half(bytes, IP + 2)),
        }
    }

    pub fn seq(self) -> u32 {
        word(self.bytes, self.tcp + 4)
    }

    pub fn ack(self) -> u32 {
        word(self.bytes, self.tcp + 8)
    }

    pub fn flags(self) -> u8 {
        self.bytes[self.tcp + 13]
    }

    /// Where urgent data ends in the stream.
    pub fn urgent(self) -> Option<u32> {
        let pointer = half(self.bytes, self.tcp + 18);
        (self.flags() & URG != 0).then(|| self.seq().wrapping_add(pointer.into()))
    }

    /// The header of TCP.
    pub fn header(self) -> &'a [u8] {
        &self.bytes[self.tcp..][..usize::from(self.bytes[self.tcp + 12] >> 4) * 4]
    }

    pub fn options(self) -> &'a [u8] {
        &self.header()[20..]
    }

    pub fn payload(self) -> &'a [u8] {
        &self.bytes[self.tcp + self.header().len()..self.end]
    }

    /// Panics unless both checksums are right and nothing is behind the packet.
    pub fn check(self) {
        assert_eq!(self.bytes.len(), self.end, "more than the packet");
        assert_eq!(sum(&[&self.bytes[IP..self.tcp]]), 0xffff, "checksum of IP");
        let pseudo = pseudo_header(self.bytes, self.tcp);
        let tcp = &self.bytes[self.tcp..];
        assert_eq!(sum(&[&pseudo, tcp]), 0xffff, "checksum of TCP");
    }

    /// All of the headers but what a frame with other payload has its own of: length, checksums, sequence number, flags,
    /// urgent pointer. Nor bits that are reserved, which are to be sent as 0 (RFC 791, 3.1; RFC 9293, 3.1).
    pub fn unchanging(self) -> Vec<u8> {
        let mut bytes = self.bytes[..self.tcp + self.header().len()].to_vec();
        for own in [
            IP + 2..IP + 4,
            IP + 10..IP + 12,
            self.tcp + 4..self.tcp + 8,
            self.tcp + 13..self.tcp + 14,
            self.tcp + 16..self.tcp + 20,
        ] {
            bytes[own].fill(0);
        }
        bytes[IP + 6] &= 0x7f;
        bytes[self.tcp + 12] &= 0xf1;
        bytes
    }
}

/// The frame with this header of TCP and this payload, and right checksums. The header is of even length, and its own
/// checksum 0.
pub fn write(tcp: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = (20 + tcp.len() + payload.len()) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(length.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 63, 6, 0, 0, 198, 51, 100, 7, 10, 77, 0, 100]);
    let begin = frame.len();
    let checksum = !sum(&[&frame[IP..]]);
    frame[IP + 10..][..2].copy_from_slice(&checksum.to_be_bytes());
    frame.extend([tcp, payload].concat());
    let checksum = !sum(&[&pseudo_header(&frame, begin), &frame[begin..]]);
    frame[begin + 16..][..2].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// What TCP's checksum is of besides TCP, in a frame of which TCP begins here.
fn pseudo_header(frame: &[u8], tcp: usize) -> Vec<u8> {
    let length = (frame.len() - tcp) as u16;
    let addresses = &frame[IP + 12..IP + 20];
    [addresses, &[0, 6], &length.to_be_bytes()].concat()
}

/// The ones' complement sum of RFC 1071 over parts, all of which but the last are of even length.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for pair in parts.iter().flat_map(|part| part.chunks(2)) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}
