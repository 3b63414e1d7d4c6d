//! LCCP frames: made with `baton-wire` for the programs to read, and read as the programs made them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use baton_abi::LccpHeader;
use baton_wire::{
    Clock, Flow, LccpKey, Message, NodePair, Refusal, ShortAddress, TcbPart, WindowScales, decode,
    encode, tag,
};
use etherparse::{EtherType, IpNumber};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::{
    cluster::{CS, CS_MAC, MSS, WINDOW_SCALE, ds, ds_mac, key, keys},
    node::{Node, Seen},
    read::Packet,
    segment::{Client, IP, Segment, ethernet, ip_packet},
};

/// Where the LCCP header of a frame begins.
pub const LCCP: usize = 14 + 20;
/// Where the packet inside begins.
pub const INNER: usize = LCCP + 80;

/// A message that a program has sent, with its sender and its receiver.
#[derive(Clone, Debug)]
pub struct Sent {
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    pub message: Message,
    pub packet: Vec<u8>,
}

/// Opens the message in the frame that came out.
#[track_caller]
pub fn sent(node: &Node, seen: &Seen) -> Sent {
    opened(node, &seen.packet())
}

/// Opens the message in a packet between nodes. Its bytes must be exactly those that `baton-wire` would write, and
/// its outer header must be as ARCHITECTURE.md says.
#[track_caller]
pub fn opened(node: &Node, outer: &Packet) -> Sent {
    assert_eq!(outer.ip.protocol, IpNumber(253));
    assert_eq!(outer.ip.time_to_live, 64);
    assert!(outer.ip.dont_fragment && !outer.ip.more_fragments && outer.ip.options.is_empty());
    // Between a program's run and this, a table of many cases may take long on an emulated machine.
    let window = std::time::Duration::from_secs(3600);
    let pair = NodePair {
        from: outer.from(),
        to: outer.to(),
    };
    let received = decode(&outer.body, pair, &keys(), node.now(), window)
        .unwrap_or_else(|error| panic!("{error}\n{outer:?}"));
    assert!(received.clock <= node.now());
    let key = key().lccp();
    let again = encode(
        &received.message,
        received.packet,
        received.clock,
        &key,
        pair,
    );
    assert_eq!(again, outer.body, "header is not canonical");
    Sent {
        from: outer.from(),
        to: outer.to(),
        packet: received.packet.to_vec(),
        message: received.message,
    }
}

pub fn flow(client: &Client) -> Flow {
    Flow::new(
        SocketAddr::V4(client.address),
        SocketAddr::V4(client.service),
    )
    .unwrap()
}

/// The TCB part that results from the options of [`crate::options::linux`].
pub fn linux_tcb() -> TcbPart {
    TcbPart {
        mss: 1460.try_into().unwrap(),
        scales: Some(WindowScales {
            client: 7.try_into().unwrap(),
            cluster: WINDOW_SCALE.try_into().unwrap(),
        }),
        sack: true,
        aware: false,
        attempt: 0,
        cwnd: 0,
        resume: 0,
    }
}

/// ADOPT as the connection server sends it.
pub fn adopt(client: &Client) -> Message {
    adopt_with(client, linux_tcb())
}

/// ADOPT with this TCB part.
pub fn adopt_with(client: &Client, tcb: TcbPart) -> Message {
    Message::Adopt {
        flow: flow(client),
        tcb,
        asker: Some(short(CS)),
    }
}

/// ADOPT after so many attempts.
pub fn adopt_after(client: &Client, attempt: u8) -> Message {
    let tcb = TcbPart {
        attempt,
        ..linux_tcb()
    };
    adopt_with(client, tcb)
}

/// ADOPT after so many attempts, sent in case the first one has not come. It names the request's keeper, if there is
/// one.
pub fn adopt_again(client: &Client, attempt: u8, keeper: Option<ShortAddress>) -> Message {
    Message::AdoptAgain {
        flow: flow(client),
        tcb: TcbPart {
            attempt,
            ..linux_tcb()
        },
        asker: Some(short(CS)),
        keeper,
    }
}

/// CLAIM of the connection server. `attempt` is the number of data servers that do not have the connection.
pub fn claim(client: &Client, attempt: u8) -> Message {
    Message::Claim {
        flow: flow(client),
        asker: short(CS),
        attempt,
        is_cut: false,
    }
}

/// FORWARD as the connection server sends it where nothing was handed over.
pub fn forward(client: &Client) -> Message {
    Message::Forward {
        flow: flow(client),
        next: None,
        attempt: 0,
    }
}

/// FORWARD as the connection server sends it while a handover to another data server is on its way.
pub fn forward_to(client: &Client, next: u16) -> Message {
    Message::Forward {
        flow: flow(client),
        next: Some(short(ds(next))),
        attempt: 0,
    }
}

/// NONE of a data server. `attempt` is the number of data servers that do not have the connection.
pub fn none(client: &Client, attempt: u8, is_plain: bool) -> Message {
    Message::None {
        flow: flow(client),
        attempt,
        is_plain,
    }
}

pub fn refused(client: &Client, tcb: TcbPart, refusal: Refusal) -> Message {
    Message::Refused {
        flow: flow(client),
        tcb,
        refusal,
    }
}

/// MOVED: the connection went to `next`, or is at the sender.
pub fn moved(client: &Client, next: Option<ShortAddress>) -> Message {
    Message::Moved {
        flow: flow(client),
        tcb: linux_tcb(),
        next,
        is_cut: false,
    }
}

pub fn short(address: Ipv4Addr) -> ShortAddress {
    ShortAddress::try_from(IpAddr::V4(address)).unwrap()
}

/// The sender and the receiver of a message from the connection server to data server 0.
pub const TO_DS: NodePair = NodePair {
    from: CS,
    to: ds(0),
};

/// The sender and the receiver of a message from a data server to the connection server.
pub const fn to_cs_from(from: u16) -> NodePair {
    NodePair {
        from: ds(from),
        to: CS,
    }
}

/// A frame from the connection server to data server 0.
pub fn to_ds(message: &Message, clock: Clock, packet: &[u8]) -> Vec<u8> {
    to_ds_raw(&encode(message, packet, clock, &key().lccp(), TO_DS))
}

pub fn to_ds_raw(body: &[u8]) -> Vec<u8> {
    let packet = ip_packet(IpNumber(253), CS, ds(0), body);
    ethernet(CS_MAC, ds_mac(0), EtherType::IPV4, &packet)
}

/// A frame from a data server to the connection server.
pub fn to_cs(from: u16, message: &Message, clock: Clock, key: &LccpKey, packet: &[u8]) -> Vec<u8> {
    to_cs_raw(from, &encode(message, packet, clock, key, to_cs_from(from)))
}

impl Node {
    /// A frame in which a data server says this to the connection server, about the connection of this packet.
    pub fn said_by(&self, from: u16, message: &Message, packet: &Segment) -> Vec<u8> {
        let packet = packet.packet();
        to_cs(from, message, self.now(), &key().lccp(), &packet)
    }
}

pub fn to_cs_raw(from: u16, body: &[u8]) -> Vec<u8> {
    let packet = ip_packet(IpNumber(253), ds(from), CS, body);
    ethernet(ds_mac(from), CS_MAC, EtherType::IPV4, &packet)
}

/// The biggest request of a client that keeps to our MSS.
pub fn biggest(client: &Client, isn: u32) -> Segment {
    let options = 12;
    client
        .get(isn)
        .payload(vec![b'x'; usize::from(MSS) - options])
}

/// Shifts the sender's clock in a header.
pub fn shift(header: &mut LccpHeader, seconds: i64) {
    let clock = u64::from_be(header.be_clock);
    header.be_clock = clock.wrapping_add_signed(seconds * 1_000_000_000).to_be();
}

/// Tags a header, whatever it says. `rest` is what is to follow it.
pub fn seal(header: &mut LccpHeader, key: &LccpKey, pair: NodePair, rest: &[u8]) {
    let tagged = header.as_bytes()[..72].try_into().unwrap();
    header.be_tag = tag(key, tagged, pair, rest).to_be();
}

/// A message with this header, whatever it says: tagged, and with the packet behind it.
pub fn sealed(mut header: LccpHeader, key: &LccpKey, pair: NodePair, packet: &[u8]) -> Vec<u8> {
    seal(&mut header, key, pair, packet);
    [header.as_bytes(), packet].concat()
}

/// The header of this message.
pub fn header_of(node: &Node, message: &Message, pair: NodePair) -> LccpHeader {
    let bytes = encode(message, &[], node.now(), &key().lccp(), pair);
    LccpHeader::read_from_bytes(&bytes[..80]).unwrap()
}

/// Tags whatever stands where a frame should have a message, for the two nodes that its IP header names.
pub fn tag_again(frame: &mut [u8], key: &LccpKey) {
    let address = |at| <[u8; 4]>::try_from(&frame[at..at + 4]).unwrap().into();
    let pair = NodePair {
        from: address(IP + 12),
        to: address(IP + 16),
    };
    if let Some((header, rest)) = frame[LCCP..].split_first_chunk_mut::<80>() {
        let tag = tag(key, header[..72].try_into().unwrap(), pair, rest);
        header[72..].copy_from_slice(&tag.to_be_bytes());
    }
}
