//! A data server's programs, compiled for this machine (`native/kernel.c`). Their state is kept per thread.

use std::net::{Ipv4Addr, SocketAddrV4};

use baton_abi::{
    Door, HaveRead, Kept, LCCP_ADOPT, LCCP_CLAIM, LCCP_FORWARD, LCCP_MOVED, LCCP_NONE,
    LCCP_RECEPTOR_DS, LCCP_REFUSED, LCCP_VERSION, LccpFlow, LccpHeader, LccpTcb,
};

/// Short addresses, as they are on the wire (`native/door.h`).
pub const CONNECTION_SERVER: u32 = 0x0900_000a;
pub const NODES: [u32; 3] = [0x0b00_000a, 0x0c00_000a, 0x0d00_000a];

const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 12345);
const CLUSTER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 100), 80);

// Commands fit the header's byte.
pub const ADOPT: u8 = LCCP_ADOPT as u8;
pub const REFUSED: u8 = LCCP_REFUSED as u8;
pub const FORWARD: u8 = LCCP_FORWARD as u8;
pub const NONE: u8 = LCCP_NONE as u8;
pub const CLAIM: u8 = LCCP_CLAIM as u8;
pub const MOVED: u8 = LCCP_MOVED as u8;

/// The header of a message of the connection server about the client's connection.
pub fn header(command: u8, attempt: u8) -> LccpHeader {
    LccpHeader {
        version: LCCP_VERSION as u8, // a small number
        receptor: LCCP_RECEPTOR_DS as u8,
        command,
        flow: LccpFlow {
            client: CLIENT.ip().to_ipv6_mapped().octets(),
            cluster: CLUSTER.ip().to_ipv6_mapped().octets(),
            be_client_port: CLIENT.port().to_be(),
            be_cluster_port: CLUSTER.port().to_be(),
        },
        be_data: match command {
            ADOPT | CLAIM => CONNECTION_SERVER,
            _ => 0,
        },
        tcb: LccpTcb {
            be_mss: 1448_u16.to_be(),
            attempt,
            ..LccpTcb::default()
        },
        ..LccpHeader::default()
    }
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct RawPacket {
    pub seq: u32,
    pub ack: u32,
    pub fin: u32,
    pub rst: u32,
    pub mark: u32,
    pub sent_in: u32,
    pub peer: u32,
    pub bytes: u32,
    pub header: LccpHeader,
}

/// A packet of the client, alone or, with `peer`, inside a message.
#[derive(Clone, Default, Debug)]
pub struct Packet {
    pub raw: RawPacket,
    pub payload: Vec<u8>,
}

impl Packet {
    pub fn end(&self) -> u32 {
        self.raw.seq.wrapping_add(self.payload.len() as u32)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Tcp,
    Ingress,
    Out,
    Early,
}

/// The listener that makes a socket of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listener {
    None,
    Server,
    Agent,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub way: Way,
    pub assigned: Listener,
    pub bound: bool,
    pub packet: Packet,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawFrame {
    way: u32,
    assigned: u32,
    bound: u32,
    payload_at: u32,
    packet: RawPacket,
}

const FRAMES_MOST: usize = 8;
const PAYLOADS: usize = 1 << 17;

#[repr(C)]
struct RawResult {
    frames: u32,
    payload_bytes: u32,
    frame: [RawFrame; FRAMES_MOST],
    payloads: [u8; PAYLOADS],
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Numbers {
    pub state: u32,
    pub begin: u32,
    pub rcv_nxt: u32,
    pub rcv_wup: u32,
    pub copied_seq: u32,
    pub write_seq: u32,
    pub snd_una: u32,
    pub bytes_acked: u32,
}

unsafe extern "C" {
    fn model_reset(has_agent: u32);
    fn model_pass_time(ns: u64);
    fn model_set_socket(node: u32, numbers: *const Numbers, is_new: u32);
    fn model_desert(node: u32, is_deserted: u32);
    fn model_drain(node: u32, drains: u32);
    fn model_door(node: u32) -> *const Door;
    fn model_set_read(node: u32, read: *const HaveRead);
    fn model_kept(node: u32) -> *const Kept;
    fn model_keep(node: u32, kept: *const Kept);
    fn model_receive(
        node: u32,
        packet: *const RawPacket,
        payload: *const u8,
        result: *mut RawResult,
    );
    fn model_leave(node: u32, seq: u32, payload: *const u8, bytes: u32);
}

/// The data servers of this thread.
pub struct Programs {
    result: Box<RawResult>,
}

impl Programs {
    pub fn new() -> Self {
        // SAFETY: the result is made of numbers only.
        let result = unsafe { Box::new_zeroed().assume_init() };
        Self { result }
    }

    pub fn reset(&mut self, has_agent: bool) {
        // SAFETY: the function writes only to what belongs to this thread.
        unsafe { model_reset(u32::from(has_agent)) }
    }

    pub fn pass_time(&mut self, ns: u64) {
        // SAFETY: the function writes only to what belongs to this thread.
        unsafe { model_pass_time(ns) }
    }

    pub fn set_socket(&mut self, node: usize, numbers: &Numbers, is_new: bool) {
        // SAFETY: the function reads the numbers, which have the layout that it expects.
        unsafe { model_set_socket(node as u32, numbers, u32::from(is_new)) }
    }

    pub fn desert(&mut self, node: usize, is_deserted: bool) {
        // SAFETY: the function takes numbers.
        unsafe { model_desert(node as u32, u32::from(is_deserted)) }
    }

    pub fn drain(&mut self, node: usize, drains: bool) {
        // SAFETY: the function takes numbers.
        unsafe { model_drain(node as u32, u32::from(drains)) }
    }

    pub fn door(&self, node: usize) -> Option<Door> {
        // SAFETY: the door that the pointer points to belongs to this thread, and is copied before anything else
        // runs.
        unsafe { model_door(node as u32).as_ref().copied() }
    }

    pub fn set_read(&mut self, node: usize, read: &HaveRead) {
        // SAFETY: this holds as in set_socket().
        unsafe { model_set_read(node as u32, read) }
    }

    pub fn kept(&self, node: usize) -> Option<Kept> {
        // SAFETY: this holds as in door().
        unsafe { model_kept(node as u32).as_ref().copied() }
    }

    pub fn keep(&mut self, node: usize, kept: &Kept) {
        // SAFETY: this holds as in set_socket().
        unsafe { model_keep(node as u32, kept) }
    }

    pub fn leave(&mut self, node: usize, seq: u32, payload: &[u8]) {
        // SAFETY: the function reads as many bytes as the payload has.
        unsafe { model_leave(node as u32, seq, payload.as_ptr(), payload.len() as u32) }
    }

    /// Gives this node a packet, and returns what becomes of it.
    pub fn receive(&mut self, node: usize, packet: &Packet) -> Vec<Frame> {
        let raw = RawPacket {
            bytes: packet.payload.len() as u32,
            ..packet.raw
        };
        // SAFETY: the function reads the packet and as many bytes of payload as it says, and writes within the
        // result.
        unsafe {
            model_receive(
                node as u32,
                &raw,
                packet.payload.as_ptr(),
                &mut *self.result,
            )
        }
        let frames = &self.result.frame[..self.result.frames as usize];
        frames.iter().map(|raw| self.frame(raw)).collect()
    }

    fn frame(&self, raw: &RawFrame) -> Frame {
        let at = raw.payload_at as usize;
        Frame {
            way: match raw.way {
                0 => Way::Tcp,
                1 => Way::Ingress,
                2 => Way::Out,
                _ => Way::Early,
            },
            assigned: match raw.assigned {
                0 => Listener::None,
                1 => Listener::Server,
                _ => Listener::Agent,
            },
            bound: raw.bound != 0,
            packet: Packet {
                raw: raw.packet,
                payload: self.result.payloads[at..][..raw.packet.bytes as usize].to_vec(),
            },
        }
    }
}
