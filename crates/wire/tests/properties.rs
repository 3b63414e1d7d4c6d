//! Properties that hold for every message, and for bytes that are not a message.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::time::Duration;

use baton_abi::LCCP_VERSION;
use baton_wire::{
    Account, Address, AnsweredRequest, Arrival, BatchFlags, Candidate, CandidateState, Clock,
    ClusterKey, Counts, Endpoint, EntryKey, Flow, Head, HeadDigest, Heads, Health, Hello,
    HelloService, Incarnation, Keys, LccpKey, Message, NodePair, Numbers, Order, Outcome, Permille,
    Progress, Query, Ready, Received, Refusal, Reject, Reply, Resume, ShortAddress, Taken,
    TakenRefusal, Tallies, TcbEntry, TcbPart, Tcbs, Verb, WindowScale, WindowScales, YieldAnswer,
    decode, encode,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const WINDOW: Duration = Duration::from_secs(10);
const HEADER_BYTES: usize = 80;
const PAIR: NodePair = NodePair {
    from: Ipv4Addr::new(192, 0, 2, 1),
    to: Ipv4Addr::new(192, 0, 2, 11),
};

proptest! {
    #[test]
    fn what_was_encoded_is_decoded(sent in sent()) {
        let bytes = sent.bytes();
        let expected = Received { message: sent.message.clone(), clock: sent.clock, packet: &sent.packet };
        prop_assert_eq!(decode(&bytes, PAIR, &Keys::only(sent.key), sent.clock, WINDOW), Ok(expected));
    }

    /// The clock of a message is compared with the time at which the message came. That is any time within the time
    /// for which the message can have waited to be read.
    #[test]
    fn what_waited_to_be_read_is_not_stale(sent in sent(), waited in 0..1_000u64, late in 0..1_000u64) {
        let bytes = sent.bytes();
        let (waited, late) = (Duration::from_secs(waited), Duration::from_secs(late));
        let now = Clock::from_nanos(sent.clock.as_nanos().saturating_add(late.as_nanos() as u64));
        let is_late = now.distance(sent.clock) > waited + WINDOW;
        let found = decode(&bytes, PAIR, &Keys::only(sent.key), Arrival::within(waited, now), WINDOW);
        prop_assert_eq!(found.err(), is_late.then_some(Reject::Stale));
        // A message that was sent after it came has a wrong clock, however long it waited.
        let before = sent.clock.before(WINDOW + late);
        let found = decode(&bytes, PAIR, &Keys::only(sent.key), Arrival::within(waited, before), WINDOW);
        let is_ahead = before.distance(sent.clock) > WINDOW;
        prop_assert_eq!(found.err(), is_ahead.then_some(Reject::Stale));
    }

    #[test]
    fn tallies_are_heard_as_they_are_told(
        incarnation in any::<u64>(), all in counts(),
        pools in vec((any::<u64>(), counts()), 0..9), routes in vec((any::<u64>(), counts()), 0..9),
    ) {
        let told = Tallies::new(incarnation, all, pools, routes);
        prop_assert_eq!(Tallies::read(&told.write()), Some(told));
    }

    /// Tallies that were read are the same after they are written and read again.
    #[test]
    fn other_bytes_are_no_tallies(bytes in vec(any::<u8>(), 0..400)) {
        if let Some(told) = Tallies::read(&bytes) {
            prop_assert_eq!(Tallies::read(&told.write()), Some(told));
        }
    }

    #[test]
    fn a_short_address_is_the_same_however_it_is_written(v4 in any::<Ipv4Addr>()) {
        let written = |ip| ShortAddress::try_from(ip).ok();
        let (own, mapped) = (IpAddr::V4(v4), IpAddr::V6(v4.to_ipv6_mapped()));
        prop_assert_eq!(written(own), written(mapped));
        prop_assert_eq!(written(own).map(ShortAddress::octets), Some(v4.octets()).filter(|o| *o != [0; 4]));
    }

    /// A flipped bit of an IPv6 address flips a bit of its short address, whatever the address was.
    #[test]
    fn every_bit_of_an_ipv6_address_counts(v6 in any::<Ipv6Addr>(), bit in 0usize..128) {
        let mut other = v6.octets();
        other[bit / 8] ^= 1 << (bit % 8);
        let other = Ipv6Addr::from(other);
        prop_assume!(v6.to_ipv4_mapped().is_none() && other.to_ipv4_mapped().is_none());
        let octets = |ip| ShortAddress::try_from(IpAddr::V6(ip)).map_or([0; 4], ShortAddress::octets);
        let mut expected = octets(v6);
        expected[bit / 8 % 4] ^= 1 << (bit % 8);
        prop_assert_eq!(octets(other), expected);
    }

    #[test]
    fn either_key_of_a_rotation_opens_and_no_other(sent in sent(), other in key(), third in key()) {
        prop_assume!(sent.key != other && sent.key != third);
        let bytes = sent.bytes();
        let open = |current, previous| decode(&bytes, PAIR, &Keys { current, previous, leads: true }, sent.clock, WINDOW);
        prop_assert!(open(sent.key, Some(other)).is_ok());
        prop_assert!(open(other, Some(sent.key)).is_ok());
        prop_assert_eq!(open(other, None), Err(Reject::BadTag));
        prop_assert_eq!(open(other, Some(third)), Err(Reject::BadTag));
    }

    #[test]
    fn the_key_of_another_pair_opens_nothing(
        sent in sent(), secret in 1u8.., one in any::<[u8; 4]>(), other in any::<[u8; 4]>()
    ) {
        let secret = ClusterKey::from_bytes([secret; 32]).unwrap();
        let (one, other) = (Ipv4Addr::from(one), Ipv4Addr::from(other));
        let own = secret.pair(PAIR.from, PAIR.to);
        let bytes = encode(&sent.message, &sent.packet, sent.clock, &own, PAIR);
        let open = |key| decode(&bytes, PAIR, &Keys::only(key), sent.clock, WINDOW);
        prop_assert!(open(own).is_ok());
        let same = [one, other] == [PAIR.from, PAIR.to] || [other, one] == [PAIR.from, PAIR.to];
        prop_assume!(!same);
        prop_assert_eq!(open(secret.pair(one, other)), Err(Reject::BadTag));
    }

    /// A node with only its own keys gives no leading commands; every other message of it is decoded as usual.
    #[test]
    fn a_node_with_only_its_own_keys_gives_no_commands(sent in sent()) {
        let bytes = sent.bytes();
        let follows = Keys { leads: false, ..Keys::only(sent.key) };
        let found = decode(&bytes, PAIR, &follows, sent.clock, WINDOW);
        let is_command = matches!(
            sent.message,
            Message::Yield { .. } | Message::Resume(_) | Message::Candidate(_) | Message::Tcbs(_)
                | Message::Taken(_) | Message::Order(_)
        );
        if is_command {
            prop_assert_eq!(found, Err(Reject::NotAllowed));
        } else {
            prop_assert!(found.is_ok());
        }
    }

    #[test]
    fn a_flipped_bit_under_the_tag_is_rejected(sent in sent(), bit in any::<prop::sample::Index>()) {
        let mut bytes = sent.bytes();
        let bit = bit.index((bytes.len() - sent.packet.len()) * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let reason = decode(&bytes, PAIR, &Keys::only(sent.key), sent.clock, WINDOW).unwrap_err();
        // Version and length are checked before the tag; the tag detects every other alteration.
        let expected = match bit / 8 {
            0 => vec![Reject::BadVersion],
            4 | 5 => vec![Reject::Short, Reject::BadTag],
            _ => vec![Reject::BadTag],
        };
        prop_assert!(expected.contains(&reason), "{reason:?} for bit {bit}");
    }

    #[test]
    fn a_message_of_other_nodes_is_rejected(sent in sent(), from in any::<u32>(), to in any::<u32>()) {
        let pair = NodePair { from: from.into(), to: to.into() };
        prop_assume!(pair != PAIR);
        let turned = NodePair { from: PAIR.to, to: PAIR.from };
        for pair in [pair, turned] {
            let bytes = sent.bytes();
            let found = decode(&bytes, pair, &Keys::only(sent.key), sent.clock, WINDOW);
            prop_assert_eq!(found, Err(Reject::BadTag));
        }
    }

    #[test]
    fn a_flipped_bit_in_the_carried_tcp_header_is_rejected(
        sent in sent().prop_filter("the tag does not cover IPv6 headers", |sent| {
            sent.packet.first().is_some_and(|first| first >> 4 == 4)
        }),
        // The tag does not cover the checksum, bits 128 to 143, which may be completed on the way.
        bit in prop_oneof![32usize..128, 144usize..160],
    ) {
        let mut bytes = sent.bytes();
        bytes[HEADER_BYTES + 20 + bit / 8] ^= 1 << (bit % 8);
        let found = decode(&bytes, PAIR, &Keys::only(sent.key), sent.clock, WINDOW);
        prop_assert_eq!(found, Err(Reject::BadTag));
    }

    #[test]
    fn a_flipped_bit_in_the_carried_flow_is_rejected(
        sent in sent().prop_filter("carries a packet", |sent| !sent.packet.is_empty()),
        bit in 0usize..96,
    ) {
        let mut bytes = sent.bytes();
        // The bit is one of the last 96 before TCP's sequence number. These are IPv4's addresses, or the last eight
        // bytes of IPv6's destination, and the ports.
        let ip_header = if bytes[HEADER_BYTES] >> 4 == 4 { 20 } else { 40 };
        let end = (HEADER_BYTES + ip_header + 4) * 8;
        let bit = end - 1 - bit;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let found = decode(&bytes, PAIR, &Keys::only(sent.key), sent.clock, WINDOW);
        prop_assert_eq!(found, Err(Reject::Mismatch));
    }

    #[test]
    fn a_message_cut_anywhere_is_none(sent in sent()) {
        let bytes = sent.bytes();
        for length in 0..bytes.len() {
            let found = decode(&bytes[..length], PAIR, &Keys::only(sent.key), sent.clock, WINDOW);
            // If the headers that the tag covers are incomplete, the tag is a different one.
            let cut_in_packet = length >= bytes.len() - sent.packet.len();
            prop_assert!(
                found == Err(Reject::Short) || cut_in_packet && found == Err(Reject::BadTag),
                "{:?} of {} of {} bytes", found, length, bytes.len()
            );
        }
    }

    #[test]
    fn the_clock_window_is_exact(sent in sent(), window in 0u64..1 << 40, beyond in 1u64..1 << 40) {
        let bytes = sent.bytes();
        let at = |now| {
            decode(&bytes, PAIR, &Keys::only(sent.key), Clock::from_nanos(now), Duration::from_nanos(window))
        };
        let clock = sent.clock.as_nanos();
        prop_assert!(at(clock + window).is_ok());
        prop_assert!(at(clock - window).is_ok());
        prop_assert_eq!(at(clock + window + beyond), Err(Reject::Stale));
        prop_assert_eq!(at(clock - window - beyond), Err(Reject::Stale));
    }

    #[test]
    fn arbitrary_bytes_are_rejected_without_a_panic(bytes in vec(any::<u8>(), 0..1400), key in key()) {
        prop_assert!(decode(&bytes, PAIR, &Keys::only(key), Clock::from_nanos(0), Duration::MAX).is_err());
    }

    #[test]
    fn arbitrary_fields_under_a_right_tag_never_panic(
        command in 0u8..25,
        receptor in 0u8..5,
        fields in vec(any::<u8>(), 68),
        body in vec(any::<u8>(), 0..300),
        packet in vec(any::<u8>(), 0..100),
        key in key(),
    ) {
        let mut header = [&[LCCP_VERSION as u8, receptor, command, 0][..], &fields].concat();
        header[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
        let rest = [body, packet].concat();
        let tag = baton_wire::tag(&key, header[..].try_into().unwrap(), PAIR, &rest);
        let bytes = [&header[..], &tag.to_be_bytes(), &rest].concat();
        let found = decode(&bytes, PAIR, &Keys::only(key), Clock::from_nanos(0), Duration::MAX);
        // An accepted message has a meaning: it can be encoded again, and then decodes to the same message.
        if let Ok(received) = found {
            let again = encode(&received.message, received.packet, received.clock, &key, PAIR);
            prop_assert_eq!(decode(&again, PAIR, &Keys::only(key), received.clock, WINDOW), Ok(received));
        }
    }
}

/// A message on its way, with the packet it carries.
#[derive(Clone, Debug)]
struct Sent {
    message: Message,
    packet: Vec<u8>,
    clock: Clock,
    key: LccpKey,
}

impl Sent {
    fn bytes(&self) -> Vec<u8> {
        encode(&self.message, &self.packet, self.clock, &self.key, PAIR)
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    // Clocks lie between 1979 and 2519, so that a window around them does not overflow.
    let clock = (1u64 << 58..0xf << 60).prop_map(Clock::from_nanos);
    (message(), vec(any::<u8>(), 0..100), clock, key()).prop_map(
        |(message, payload, clock, key)| {
            let packet = message
                .carries()
                .map(|flow| packet(flow, &payload))
                .unwrap_or_default();
            Sent {
                message,
                packet,
                clock,
                key,
            }
        },
    )
}

fn key() -> impl Strategy<Value = LccpKey> {
    any::<[u64; 2]>().prop_map(LccpKey::from_words)
}

fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        any::<u16>().prop_map(|last| Message::Sync { last }),
        vec(any::<u16>(), 1..Numbers::MAX)
            .prop_map(|numbers| Message::Resend(Numbers::lists(&numbers).swap_remove(0))),
        (flow(), tcb(), option::of(short_address()))
            .prop_map(|(flow, tcb, asker)| { Message::Adopt { flow, tcb, asker } }),
        (flow(), tcb(), refusal()).prop_map(|(flow, tcb, refusal)| Message::Refused {
            flow,
            tcb,
            refusal
        }),
        (flow(), option::of(short_address()), any::<u8>()).prop_map(|(flow, next, attempt)| {
            Message::Forward {
                flow,
                next,
                attempt,
            }
        }),
        (
            flow(),
            tcb(),
            option::of(short_address()),
            option::of(short_address())
        )
            .prop_map(|(flow, tcb, asker, keeper)| Message::AdoptAgain {
                flow,
                tcb: TcbPart { resume: 0, ..tcb },
                asker,
                keeper,
            }),
        (flow(), short_address(), any::<u8>()).prop_map(|(flow, keeper, attempt)| {
            Message::ForwardKept {
                flow,
                keeper,
                attempt,
            }
        }),
        (flow(), option::of(any::<u32>())).prop_map(|(flow, end)| Message::Received { flow, end }),
        (
            any::<u64>(),
            prop_oneof![
                prop::sample::select(vec![Verb::Drain, Verb::Undrain, Verb::Tell]),
                short_address().prop_map(Verb::Migrate),
            ]
        )
            .prop_map(|(number, verb)| Message::Order(Order { number, verb })),
        (any::<u64>(), ".{0,200}")
            .prop_map(|(number, text)| Message::Account(Account::new(number, text).unwrap())),
        (flow(), any::<u8>(), any::<bool>()).prop_map(|(flow, attempt, is_plain)| Message::None {
            flow,
            attempt,
            is_plain,
        }),
        (flow(), short_address(), any::<u8>(), any::<bool>()).prop_map(
            |(flow, asker, attempt, is_cut)| Message::Claim {
                flow,
                asker,
                attempt,
                is_cut,
            }
        ),
        (flow(), tcb(), option::of(short_address()), any::<bool>()).prop_map(
            |(flow, tcb, next, is_cut)| Message::Moved {
                flow,
                tcb,
                next,
                is_cut,
            }
        ),
        resumption(),
        hello().prop_map(Message::Hello),
        query().prop_map(Message::Query),
        reply().prop_map(Message::Reply),
        tcbs().prop_map(Message::Tcbs),
        taken().prop_map(Message::Taken),
        candidate().prop_map(Message::Candidate),
    ]
}

fn resumption() -> impl Strategy<Value = Message> {
    let known = || option::of(1..=u64::MAX);
    let digest = || (1..=u64::MAX).prop_map(|n| NonZeroU64::new(n).unwrap());
    let partial =
        || (digest(), any::<u16>()).prop_map(|(value, unseen)| HeadDigest::new(value, unseen));
    let progress = (any::<[u32; 2]>(), option::of(partial()), known()).prop_map(
        |([start, acknowledged], digest, length)| Progress {
            start,
            acknowledged,
            digest,
            length,
        },
    );
    let outcome = prop::sample::select(vec![Outcome::Ready, Outcome::Differs, Outcome::Full]);
    prop_oneof![
        any::<(bool, bool)>().prop_map(|(turned, dead)| Message::Alive { turned, dead }),
        (flow(), option::of(short_address()))
            .prop_map(|(flow, next)| Message::Yield { flow, next }),
        (
            flow(),
            prop::sample::select(vec![
                YieldAnswer::Gone,
                YieldAnswer::Kept,
                YieldAnswer::Refused
            ])
        )
            .prop_map(|(flow, answer)| Message::Yielded { flow, answer }),
        (
            flow(),
            any::<u64>(),
            progress,
            vec(any::<u8>(), 0..=Resume::LONGEST)
        )
            .prop_map(|(flow, number, progress, request)| {
                Message::Resume(Resume::new(flow, number, progress, request).unwrap())
            }),
        (
            flow(),
            any::<u64>(),
            outcome,
            option::of(digest().prop_map(HeadDigest::whole)),
            known()
        )
            .prop_map(
                |(flow, number, outcome, digest, length)| Message::Ready(Ready {
                    flow,
                    number,
                    outcome,
                    digest,
                    length,
                })
            ),
        vec((flow(), any::<[u32; 2]>(), partial()), 1..=Heads::MAX).prop_map(|heads| {
            let heads: Vec<Head> = heads.into_iter().map(head).collect();
            Message::Heads(Heads::lists(&heads).remove(0))
        }),
        (
            (flow(), any::<[u32; 2]>(), partial()),
            any::<[u32; 2]>(),
            vec(any::<u8>(), 0..=Heads::LONGEST_REQUEST + 1)
        )
            .prop_map(|(of, [seq, pool], text)| {
                let request = AnsweredRequest { seq, pool, text };
                Message::Heads(Heads::with_request(head(of), request))
            }),
    ]
    .boxed()
}

fn head((flow, [start, length], digest): (Flow, [u32; 2], HeadDigest)) -> Head {
    Head {
        key: EntryKey {
            client: flow.client(),
            cluster: ShortAddress::try_from(flow.cluster().address.ip())
                .unwrap_or(ShortAddress::from_word(1).unwrap()),
            port: flow.cluster().port,
        },
        start,
        digest,
        length: NonZeroU32::new(length),
        number: (length % 3 == 0).then_some(start as u8),
    }
}

/// The strategy is boxed, like that of the TCB part. By value in the strategies of all messages, both would need more
/// stack than a test has.
fn flow() -> BoxedStrategy<Flow> {
    let v4 = || any::<Ipv4Addr>().prop_map(IpAddr::V4);
    // The address is not v4-mapped, which would be IPv4.
    let v6 = || {
        any::<Ipv6Addr>()
            .prop_filter("v4", |ip| ip.to_ipv4_mapped().is_none())
            .prop_map(IpAddr::V6)
    };
    (prop_oneof![(v4(), v4()), (v6(), v6())], any::<[u16; 2]>())
        .prop_map(|((client, cluster), ports)| {
            let end = |ip: IpAddr, port| Endpoint {
                address: ip.into(),
                port,
            };
            Flow::new(end(client, ports[0]), end(cluster, ports[1])).unwrap()
        })
        .boxed()
}

fn tcb() -> BoxedStrategy<TcbPart> {
    let scale = || (0..=WindowScale::MAX).prop_map(|shift| WindowScale::try_from(shift).unwrap());
    let scales = (scale(), scale()).prop_map(|(client, cluster)| WindowScales { client, cluster });
    (
        any::<NonZeroU16>(),
        option::of(scales),
        any::<(bool, bool)>(),
        any::<u8>(),
        any::<u16>(),
        any::<u64>(),
    )
        .prop_map(
            |(mss, scales, (sack, aware), attempt, cwnd, resume)| TcbPart {
                mss,
                scales,
                sack,
                aware,
                attempt,
                cwnd,
                resume,
            },
        )
        .boxed()
}

fn refusal() -> impl Strategy<Value = Refusal> {
    prop::sample::select(vec![
        Refusal::NoListener,
        Refusal::NotAssigned,
        Refusal::Other,
    ])
}

fn short_address() -> impl Strategy<Value = ShortAddress> {
    any::<IpAddr>().prop_filter_map("zero", |ip| ShortAddress::try_from(ip).ok())
}

fn query() -> impl Strategy<Value = Query> {
    let text = |most| vec(any::<u8>(), 0..=most);
    (flow(), any::<u64>(), any::<u64>(), text(300), text(600))
        .prop_map(|(flow, number, pool, host, path)| Query::new(flow, number, pool, &host, &path))
}

fn reply() -> impl Strategy<Value = Reply> {
    let server = option::of(
        any::<IpAddr>().prop_filter("none", |ip| Address::from(*ip).octets() != [0; 16]),
    );
    (flow(), any::<u64>(), server, any::<u32>()).prop_map(|(flow, number, server, lifetime_ms)| {
        Reply {
            flow,
            number,
            server: server.map(Address::from),
            lifetime_ms,
        }
    })
}

fn tcbs() -> impl Strategy<Value = Tcbs> {
    (
        any::<(u64, u32, bool, bool, bool)>(),
        vec(tcb_entry(), 0..=Tcbs::ENTRIES),
    )
        .prop_map(|((migration, batch, first, last, abort), entries)| {
            let flags = BatchFlags { first, last, abort };
            Tcbs::new(migration, batch, flags, &entries)
        })
}

fn tcb_entry() -> BoxedStrategy<TcbEntry> {
    (
        any::<([u8; 16], u16, u16)>(),
        [short_address(), short_address()],
        option::of(short_address()),
        any::<(u64, [u32; 4], [u8; 2])>(),
        option::of(1..=u64::MAX),
        tcb(),
    )
        .prop_map(|(at, [cluster, owner], previous, rest, route, tcb)| {
            let (address, client_port, port) = at;
            let (pool, [request_seq, last_seq, last_ack, age], [state, attempt]) = rest;
            let client = Endpoint {
                address: Address::from_octets(address),
                port: client_port,
            };
            TcbEntry {
                key: EntryKey {
                    client,
                    cluster,
                    port,
                },
                pool,
                route,
                request_seq,
                last_seq,
                last_ack,
                age,
                owner,
                previous,
                mss: tcb.mss,
                scales: tcb.scales,
                sack: tcb.sack,
                state,
                attempt,
            }
        })
        .boxed()
}

fn taken() -> impl Strategy<Value = Taken> {
    let refusal = prop::sample::select(vec![
        TakenRefusal::NoConnectionServer,
        TakenRefusal::Stranger,
        TakenRefusal::Busy,
        TakenRefusal::Unknown,
        TakenRefusal::NoTable,
        TakenRefusal::Other,
    ]);
    (
        any::<(u64, u32, [u64; 4], u32, [u32; 4])>(),
        option::of(refusal),
    )
        .prop_map(
            |((migration, next, came, taken, left_out), refusal)| Taken {
                migration,
                next,
                came,
                taken,
                left_out,
                refusal,
            },
        )
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let handing = any::<IpAddr>()
        .prop_filter("nobody", |ip| Address::from(*ip).octets() != [0; 16])
        .prop_map(|to| CandidateState::Handing { to: to.into() });
    let state = prop_oneof![
        Just(CandidateState::Standby),
        Just(CandidateState::Front),
        handing,
    ];
    (any::<u64>(), state).prop_map(|(epoch, state)| Candidate { epoch, state })
}

fn hello() -> impl Strategy<Value = Hello> {
    (
        any::<u64>(),
        0..=Permille::MAX,
        any::<bool>(),
        vec(hello_service(), 0..=Hello::MAX_SERVICES),
    )
        .prop_map(|(incarnation, cpu, draining, services)| {
            let incarnation = Incarnation::started_at(Clock::from_nanos(incarnation));
            let hello = Hello::new(incarnation, Permille::try_from(cpu).unwrap(), services);
            hello.unwrap().with_draining(draining)
        })
}

fn hello_service() -> impl Strategy<Value = HelloService> {
    let health = prop::sample::select(vec![Health::Unknown, Health::Passing, Health::Failing]);
    (any::<[u8; 16]>(), any::<u16>(), health, any::<u32>()).prop_map(
        |(address, port, health, connections)| {
            let cluster = Endpoint {
                address: Address::from_octets(address),
                port,
            };
            HelloService {
                cluster,
                health,
                connections,
            }
        },
    )
}

/// A TCP segment of `flow`. It has no checksums, because the decoder does not check them.
fn packet(flow: Flow, payload: &[u8]) -> Vec<u8> {
    let (client, cluster) = (flow.client(), flow.cluster());
    let tcp_length = (20 + payload.len()) as u16;
    let mut packet = Vec::new();
    match (client.address.ip(), cluster.address.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend([0x45, 0]);
            packet.extend((20 + tcp_length).to_be_bytes());
            packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        _ => {
            packet.extend([0x60, 0, 0, 0]);
            packet.extend(tcp_length.to_be_bytes());
            packet.extend([6, 64]);
            packet.extend(client.address.octets());
            packet.extend(cluster.address.octets());
        }
    }
    packet.extend(client.port.to_be_bytes());
    packet.extend(cluster.port.to_be_bytes());
    packet.extend([0; 16]);
    packet.extend(payload);
    packet
}

fn counts() -> impl Strategy<Value = Counts> {
    any::<[u64; 4]>().prop_map(|[requests, bytes, handovers, unavailable]| Counts {
        requests,
        bytes,
        handovers,
        unavailable,
    })
}
