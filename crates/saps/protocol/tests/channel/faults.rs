//! An end that breaks the rules harms nobody but itself.

use baton_saps_protocol::wire::{Errno, Frame, Hello, Side, Tag, Way};
use baton_saps_protocol::{Channel, Event, Fault, HELLO_PATIENCE, Received};

use super::world::{B_R, LANES, World, endpoint};

/// The application node's end with two connections, their tags, and the epoch that frames to it carry.
fn opened() -> (World, [Tag; 2], u32) {
    let mut world = World::new(B_R);
    world.open();
    world.make(1);
    world.make(1);
    world.settle();
    let tags: Vec<Tag> = (world.delivered.iter())
        .filter_map(|(_, _, frame)| match frame {
            Frame::MakeConnection { tag, .. } => Some(*tag),
            _ => None,
        })
        .collect();
    let epoch = (world.delivered.iter())
        .find_map(|(side, epoch, _)| (*side == 0 && *epoch != 0).then_some(*epoch));
    (world, [tags[0], tags[1]], epoch.unwrap())
}

fn message(tag: Tag, length: usize) -> Frame {
    Frame::SendMessage {
        tag,
        message: vec![1; length].into(),
    }
}

#[test]
fn bytes_beyond_the_credit_reset_their_connection_alone() {
    let (mut world, [first, second], epoch) = opened();
    let whole = message(first, B_R as usize);
    let channel = &mut world.channels[0];
    assert_eq!(channel.handle_frame(epoch, whole), Ok(()));
    assert_eq!(
        channel.handle_frame(epoch, message(first, 3)),
        Err(Fault::BeyondCredit { tag: first, by: 3 })
    );
    assert_eq!(channel.counters().beyond_credit, 1);
    let id = world.pairs[0].ends[0].id.unwrap();
    // Bytes that had arrived before can be read.
    assert!(matches!(channel.receive(id, 9000), Received::Data(bytes) if bytes.len() == 1000));
    assert_eq!(channel.receive(id, 1), Received::Broken(Errno::PROTOCOL));
    assert_eq!(channel.receive(id, 1), Received::End);
    assert_eq!(channel.handle_frame(epoch, message(second, 3)), Ok(()));
    world.settle_wires();
    let other = world.pairs[0].ends[1].id.unwrap();
    assert_eq!(world.channels[1].send_room(other), Err(Errno::PROTOCOL));
    assert_eq!(world.channels[1].send_room(other), Err(Errno::BROKEN_PIPE));
}

#[test]
fn frames_about_nothing_are_counted_and_change_nothing() {
    let (mut world, _, epoch) = opened();
    let tag = Tag(4711);
    let before = world.channels[0].gauges();
    for frame in [
        message(tag, 1),
        Frame::Shutdown { tag },
        Frame::BufferAvailable { tag, limit: 9 },
        Frame::ConnectionClosed { tag },
    ] {
        let done = world.channels[0].handle_frame(epoch, frame);
        assert_eq!(done, Err(Fault::UnknownTag { tag }));
    }
    assert_eq!(world.channels[0].counters().unknown, 4);
    assert_eq!(world.channels[0].gauges(), before);
}

#[test]
fn each_rule_that_is_broken_has_a_name() {
    let (mut world, [tag, other], epoch) = opened();
    let channel = &mut world.channels[0];
    let listener = world.listener.unwrap();
    let peer = endpoint("192.0.2.9:9");
    let way = Way::In {
        listener,
        peer,
        local: peer,
    };
    let out = Way::Out {
        to: peer,
        options: Default::default(),
    };
    let limit = 5;
    for (frame, fault) in [
        (
            Frame::MakeConnection { tag, limit, way },
            Fault::TagInUse { tag },
        ),
        (
            Frame::MakeConnection {
                tag: Tag(8),
                limit,
                way,
            },
            Fault::TagInUse { tag: Tag(8) },
        ),
        (
            Frame::MakeConnection {
                tag: Tag(99),
                limit,
                way: out,
            },
            Fault::WrongSide,
        ),
        (Frame::Unlisten { listener }, Fault::WrongSide),
        (
            Frame::BufferAvailable { tag, limit },
            Fault::CreditShrunk { tag },
        ),
        (
            Frame::ConnectionAccepted {
                tag,
                limit,
                local: peer,
            },
            Fault::OutOfPlace { tag },
        ),
        (
            Frame::Hello(Hello::new(Side::Io, 1, "io1").unwrap()),
            Fault::Hello,
        ),
    ] {
        assert_eq!(channel.handle_frame(epoch, frame), Err(fault));
    }
    assert_eq!(
        channel.handle_frame(epoch, Frame::Shutdown { tag: other }),
        Ok(())
    );
    assert_eq!(
        channel.handle_frame(epoch, message(other, 1)),
        Err(Fault::AfterShutdown { tag: other })
    );
    assert_eq!(channel.counters().faults, 8);
}

#[test]
fn who_asks_and_does_not_read_the_answers_is_given_up() {
    let (mut world, _, epoch) = opened();
    let channel = &mut world.channels[0];
    let mut sent = 0_usize;
    let fault = loop {
        // A CloseConnection for an unknown tag is answered, because this end's refusal may not have arrived when it
        // was sent.
        let frame = Frame::CloseConnection { tag: Tag(4711) };
        match channel.handle_frame(epoch, frame) {
            Ok(()) => sent += 1,
            Err(fault) => break fault,
        }
        assert!(sent < 1 << 20);
    };
    assert_eq!(fault, Fault::Unread);
    assert!(fault.breaks_channel());
    assert_eq!(channel.counters().unread, 1);
    // An end that reads the answers may go on for ever.
    for lane in 0..LANES {
        while channel.poll_transmit(lane).is_some() {}
    }
    for _ in 0..2 * sent {
        let frame = Frame::CloseConnection { tag: Tag(4711) };
        assert_eq!(channel.handle_frame(epoch, frame), Ok(()));
        for lane in 0..LANES {
            while channel.poll_transmit(lane).is_some() {}
        }
    }
}

#[test]
fn what_ends_while_it_is_being_made_leaves_nothing() {
    let (mut world, _, epoch) = opened();
    let (listener, peer) = (world.listener.unwrap(), endpoint("192.0.2.9:9"));
    let channel = &mut world.channels[0];
    let before = channel.gauges();
    let (tag, way) = (
        Tag(4711),
        Way::In {
            listener,
            peer,
            local: peer,
        },
    );
    let made = Frame::MakeConnection { tag, limit: 5, way };
    assert_eq!(channel.handle_frame(epoch, made), Ok(()));
    let errno = Errno::RESET;
    let reset = channel.handle_frame(epoch, Frame::Reset { tag, errno });
    assert_eq!(reset, Ok(()));
    let asked = std::iter::from_fn(|| channel.poll()).find_map(|event| match event {
        Event::Asked { id, .. } => Some(id),
        _ => None,
    });
    assert!(!channel.accept(asked.unwrap(), peer));
    assert_eq!(channel.gauges(), before);
}

#[test]
fn a_link_begins_with_a_hello_of_the_other_side_in_time() {
    let mut channel = Channel::new(Side::Io, "io1", B_R, u32::MAX);
    let now = Default::default();
    channel.handle_link(now, 1);
    // The channel counts its epoch from u32::MAX to 1. It leaves out 0, which only a Hello carries.
    assert_eq!(
        channel.handle_frame(0, message(Tag(1), 1)),
        Err(Fault::Hello)
    );
    let ours = Hello::new(Side::Io, 1, "io2").unwrap();
    assert_eq!(
        channel.handle_frame(0, Frame::Hello(ours)),
        Err(Fault::WrongSide)
    );
    assert_eq!(channel.next_timeout(), Some(now + HELLO_PATIENCE));
    let theirs = Hello::new(Side::Application, 9, "app1").unwrap();
    assert_eq!(channel.handle_frame(0, Frame::Hello(theirs)), Ok(()));
    assert_eq!(
        channel.poll(),
        Some(Event::Up {
            name: "app1".into()
        })
    );
    let answer = Hello::new(Side::Io, 1, "io1").unwrap();
    assert_eq!(channel.poll_transmit(0), Some((0, Frame::Hello(answer))));
    assert_eq!(channel.next_timeout(), None);
}
