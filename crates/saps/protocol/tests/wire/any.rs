//! Strategies that make any frame.

use baton_saps_protocol::wire::{
    Errno, Families, Frame, Hello, ListenerTag, Side, SocketOptions, Tag, TakenPort, Way,
};
use baton_wire::{Address, Endpoint};
use proptest::collection::vec;
use proptest::prelude::*;

pub fn frame() -> impl Strategy<Value = Frame> {
    let tag = || any::<u32>().prop_map(Tag);
    let listener = || any::<u32>().prop_map(ListenerTag);
    prop_oneof![
        hello().prop_map(Frame::Hello),
        (listener(), any::<u16>(), families()).prop_map(|(listener, port, families)| {
            Frame::Listen {
                listener,
                port,
                families,
            }
        }),
        (listener(), any::<u16>()).prop_map(|(listener, port)| Frame::Listening { listener, port }),
        (listener(), errno()).prop_map(|(listener, errno)| Frame::NotListening { listener, errno }),
        listener().prop_map(|listener| Frame::Unlisten { listener }),
        (tag(), any::<u64>(), way()).prop_map(|(tag, limit, way)| Frame::MakeConnection {
            tag,
            limit,
            way
        }),
        (tag(), any::<u64>(), endpoint())
            .prop_map(|(tag, limit, local)| { Frame::ConnectionAccepted { tag, limit, local } }),
        (tag(), errno()).prop_map(|(tag, errno)| Frame::Exception { tag, errno }),
        (tag(), vec(any::<u8>(), 1..2000)).prop_map(|(tag, message)| Frame::SendMessage {
            tag,
            message: message.into(),
        }),
        (tag(), any::<u64>()).prop_map(|(tag, limit)| Frame::BufferAvailable { tag, limit }),
        tag().prop_map(|tag| Frame::Shutdown { tag }),
        tag().prop_map(|tag| Frame::CloseConnection { tag }),
        tag().prop_map(|tag| Frame::ConnectionClosed { tag }),
        (tag(), errno()).prop_map(|(tag, errno)| Frame::Reset { tag, errno }),
        (tag(), options()).prop_map(|(tag, options)| Frame::SetOptions { tag, options }),
        vec(taken(), 0..40).prop_map(|ports| Frame::Taken {
            ports: ports.into(),
        }),
    ]
}

fn hello() -> impl Strategy<Value = Hello> {
    let side = prop_oneof![Just(Side::Application), Just(Side::Io)];
    (side, any::<u32>(), "[!-~]{1,63}")
        .prop_map(|(side, epoch, name)| Hello::new(side, epoch, &name).unwrap())
}

fn families() -> impl Strategy<Value = Families> {
    prop_oneof![Just(Families::V4), Just(Families::V6), Just(Families::Both)]
}

fn errno() -> impl Strategy<Value = Errno> {
    (1..=Errno::MAX).prop_map(|number| Errno::new(number).unwrap())
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (any::<[u8; 16]>(), any::<u16>()).prop_map(|(octets, port)| Endpoint {
        address: Address::from_octets(octets),
        port,
    })
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        (any::<u32>(), endpoint(), endpoint()).prop_map(|(listener, peer, local)| Way::In {
            listener: ListenerTag(listener),
            peer,
            local,
        }),
        (endpoint(), options()).prop_map(|(to, options)| Way::Out { to, options }),
    ]
}

fn options() -> impl Strategy<Value = SocketOptions> {
    let switches = any::<[Option<bool>; 2]>();
    (switches, any::<[Option<u32>; 6]>()).prop_map(|([nodelay, keepalive], numbers)| {
        let [
            keep_idle,
            keep_interval,
            keep_probes,
            user_timeout,
            send_buffer,
            receive_buffer,
        ] = numbers;
        SocketOptions {
            nodelay,
            keepalive,
            keep_idle,
            keep_interval,
            keep_probes,
            user_timeout,
            send_buffer,
            receive_buffer,
        }
    })
}

fn taken() -> impl Strategy<Value = TakenPort> {
    (any::<u16>(), families()).prop_map(|(port, families)| TakenPort { port, families })
}
