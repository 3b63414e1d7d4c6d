//! Nodes that know the cluster key and then break the rules, over TCP. They harm only themselves: each fault is
//! counted by its name, and another node's connection goes on beside it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use baton_saps::{Agent, Counters, Family, NetworkKind, SocketOptions, VirtualStream};
use baton_saps_protocol::wire::{Errno, Frame, Hello, Side, Tag};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::cluster::{Cluster, client, key, on, until};
use super::stranger::{Stranger, open_at, soon};

/// Another node, with a connection that must go on.
struct Bystander {
    agent: Agent,
    listening: baton_saps::Listening,
    client: TcpStream,
    stream: VirtualStream,
}

impl Bystander {
    async fn new(cluster: &Cluster) -> Self {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let client = client(listening.port()).await;
        let stream = listening.accept().await.unwrap().stream;
        Self {
            agent,
            listening,
            client,
            stream,
        }
    }

    /// Checks that bytes go both ways, over the bystander's connection and over a new one.
    async fn goes_on(&mut self) {
        echo(&mut self.client, &mut self.stream).await;
        let mut client = client(self.listening.port()).await;
        let mut stream = self.listening.accept().await.unwrap().stream;
        echo(&mut client, &mut stream).await;
        assert_eq!(self.agent.report().counters.lost, 0);
    }
}

async fn echo(client: &mut TcpStream, stream: &mut VirtualStream) {
    let mut found = [0; 4];
    client.write_all(b"ping").await.unwrap();
    stream.read_exact(&mut found).await.unwrap();
    stream.write_all(&found).await.unwrap();
    client.read_exact(&mut found).await.unwrap();
    assert_eq!(&found, b"ping");
}

impl Cluster {
    fn counted(&self) -> Counters {
        self.io.as_ref().unwrap().report().channels
    }

    async fn stranger(&self) -> Stranger {
        Stranger::join(self.at, &key(1), "app2").await
    }

    /// Waits until the bystander is the only node, with its one link and one port.
    async fn is_alone(&self, bystander: &mut Bystander) {
        let io = self.io.as_ref().unwrap();
        until(|| (io.report().nodes.len() == 1).then_some(())).await;
        bystander.goes_on().await;
        let report = io.report();
        let port = bystander.listening.port();
        assert_eq!(report.ports, [(port, false, 1)]);
        assert_eq!(report.nodes[0].node, "app1");
        until(|| (open_at(self.at.port()) == 1).then_some(())).await;
    }
}

fn message(tag: Tag, length: usize) -> Frame {
    let message = vec![1; length].into();
    Frame::SendMessage { tag, message }
}

#[test]
fn what_is_no_frame_ends_its_channel_alone() {
    // A length above that of a message, a length above that of memory, an unknown kind, and something in the reserved
    // zeros.
    let head = |kind: u8, reserved: u8, length: u32| {
        let mut head = vec![kind, reserved, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        head.extend(length.to_be_bytes());
        head
    };
    let cases = [
        head(9, 0, 65_537),
        head(9, 0, u32::MAX),
        head(15, 0, 0),
        head(99, 0, 4),
        head(9, 1, 4),
    ];
    on(NetworkKind::Tcp, |cluster| {
        let cases = cases.clone();
        async move {
            let mut bystander = Bystander::new(&cluster).await;
            for (number, bytes) in (1..).zip(cases) {
                let mut stranger = cluster.stranger().await;
                let port = stranger.listen().await;
                let (mut client, _) = stranger.accept(port).await;
                stranger.say_bytes(&bytes).await;
                assert_eq!(soon(stranger.hear()).await, None, "{bytes:?}");
                // The node's clients are told at once, and it no longer listens.
                let error = soon(client.read(&mut [0; 1])).await.unwrap_err();
                assert_eq!(error.raw_os_error(), Some(104));
                cluster.is_alone(&mut bystander).await;
                assert_eq!((cluster.counted().malformed, open_at(port)), (number, 0));
            }
        }
    });
}

#[test]
fn a_frame_that_does_not_end_ends_with_its_link() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        let mut stranger = cluster.stranger().await;
        let port = stranger.listen().await;
        let (mut client, offer) = stranger.accept(port).await;
        let whole = message(offer.tag, 1000).encode(stranger.epoch);
        stranger.say_bytes(&whole[..500]).await;
        // Half a frame holds up nobody else.
        bystander.goes_on().await;
        stranger.end().await;
        assert_eq!(soon(stranger.hear()).await, None);
        let error = soon(client.read(&mut [0; 1])).await.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(104));
        cluster.is_alone(&mut bystander).await;
        let counted = cluster.counted();
        assert_eq!((counted.truncated, counted.malformed), (1, 0));
    });
}

#[test]
fn frames_about_no_connection_are_counted_and_change_nothing() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        let mut stranger = cluster.stranger().await;
        let port = stranger.listen().await;
        let (mut client, offer) = stranger.accept(port).await;
        let (errno, limit, local) = (Errno::IO, 9, offer.local);
        for tag in [Tag(4711), Tag(4712)] {
            let options = SocketOptions::default();
            for frame in [
                message(tag, 9),
                Frame::BufferAvailable { tag, limit },
                Frame::Shutdown { tag },
                Frame::ConnectionClosed { tag },
                Frame::SetOptions { tag, options },
                Frame::ConnectionAccepted { tag, limit, local },
                Frame::Exception { tag, errno },
            ] {
                stranger.say(frame).await;
            }
        }
        assert!(stranger.is_heard().await);
        assert_eq!(cluster.counted().unknown, 14);
        // The node's own connection goes on as well.
        stranger.say(message(offer.tag, 3)).await;
        let mut found = [0; 3];
        client.read_exact(&mut found).await.unwrap();
        assert_eq!(found, [1; 3]);
        bystander.goes_on().await;
        drop(stranger);
        cluster.is_alone(&mut bystander).await;
    });
}

#[test]
fn what_is_against_the_rules_of_a_connection_resets_that_one() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        let mut stranger = cluster.stranger().await;
        let port = stranger.listen().await;
        let (mut spared, other) = stranger.accept(port).await;
        for (number, wrong) in (1..).zip(["credit", "end", "twice"]) {
            let (mut client, offer) = stranger.accept(port).await;
            let tag = offer.tag;
            match wrong {
                "credit" => {
                    // The client reads nothing, so the I/O server can take only what the client's socket and its own
                    // buffer hold.
                    let whole = message(tag, 60_000);
                    for _ in 0..400 {
                        stranger.say(whole.clone()).await;
                    }
                }
                "end" => {
                    stranger.say(Frame::Shutdown { tag }).await;
                    stranger.say(message(tag, 1)).await;
                }
                _ => {
                    let (limit, local) = (9, offer.local);
                    stranger
                        .say(Frame::ConnectionAccepted { tag, limit, local })
                        .await;
                }
            }
            let reset =
                stranger.until(|frame| matches!(frame, Frame::Reset { tag: of, .. } if *of == tag));
            let errno = Errno::PROTOCOL;
            assert_eq!(
                soon(reset).await,
                Some(Frame::Reset { tag, errno }),
                "{wrong}"
            );
            stranger.say(Frame::ConnectionClosed { tag }).await;
            // Bytes that had arrived before may still be read. Then the connection is broken.
            let read = soon(client.read_to_end(&mut Vec::new())).await;
            assert_eq!(read.unwrap_err().raw_os_error(), Some(104), "{wrong}");
            let counted = cluster.counted();
            assert_eq!((counted.beyond_credit, counted.faults), (1, number - 1));
            assert!(offer.limit < 400 * 60_000);
        }
        // The other connection of the same node has not been affected.
        stranger.say(message(other.tag, 3)).await;
        let mut found = [0; 3];
        spared.read_exact(&mut found).await.unwrap();
        bystander.goes_on().await;
        // Only the spared connection is still open, and nothing is left of those that were reset.
        let io = cluster.io.as_ref().unwrap();
        until(|| {
            let nodes = io.report().nodes;
            let of = nodes.iter().find(|node| node.node == "app2").unwrap();
            (of.gauges.connections == 1).then_some(())
        })
        .await;
        until(|| (open_at(port) == 1).then_some(())).await;
        drop(stranger);
        cluster.is_alone(&mut bystander).await;
    });
}

#[test]
fn who_speaks_for_the_other_side_or_says_hello_twice_is_given_up() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        let hello = |side| Frame::Hello(Hello::new(side, 5, "app2").unwrap());
        let again = [
            hello(Side::Application),
            Frame::Taken {
                ports: Box::default(),
            },
        ];
        for (number, frame) in (1..).zip(again) {
            let mut stranger = cluster.stranger().await;
            stranger.say(frame).await;
            assert_eq!(soon(stranger.hear()).await, None);
            cluster.is_alone(&mut bystander).await;
            assert_eq!(cluster.counted().faults, number);
        }
        for (number, frame) in (3..).zip([hello(Side::Io), message(Tag(1), 1)]) {
            let mut stranger = Stranger::prove(cluster.at, &key(1)).await;
            stranger.say(frame).await;
            assert_eq!(soon(stranger.hear()).await, None);
            cluster.is_alone(&mut bystander).await;
            assert_eq!(cluster.counted().faults, number);
        }
        // A node that sends nothing at all is given up soon.
        let mut stranger = Stranger::prove(cluster.at, &key(1)).await;
        assert_eq!(soon(stranger.hear()).await, None);
        cluster.is_alone(&mut bystander).await;
    });
}

#[test]
fn an_earlier_session_that_is_replayed_is_stale() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        let mut first = cluster.stranger().await;
        let port = first.listen().await;
        let (mut client, offer) = first.accept(port).await;
        first.say(message(offer.tag, 100)).await;
        client.read_exact(&mut [0; 100]).await.unwrap();
        let recorded = first.said.clone();
        let epoch = first.epoch;
        drop(first);
        cluster.is_alone(&mut bystander).await;

        // The replay starts with the Hello: that begins a session, but none of the later frames takes effect.
        let mut second = Stranger::prove(cluster.at, &key(1)).await;
        second.say_bytes(&recorded).await;
        let Some(Frame::Hello(hello)) = soon(second.hear()).await else {
            panic!("no Hello");
        };
        assert_ne!(hello.epoch, epoch);
        second.epoch = hello.epoch;
        assert!(second.is_heard().await);
        assert_eq!(cluster.counted().stale, 3);
        let io = cluster.io.as_ref().unwrap();
        assert_eq!(io.report().ports.len(), 1);

        // The replay comes in the middle of another session, about a connection that has the same tag.
        let port = second.listen().await;
        let (mut client, again) = second.accept(port).await;
        assert_eq!(again.tag, offer.tag);
        second
            .say_bytes(&message(offer.tag, 100).encode(epoch))
            .await;
        let tag = offer.tag;
        let reset = Frame::Reset {
            tag,
            errno: Errno::IO,
        };
        second.say_bytes(&reset.encode(epoch)).await;
        second.say(message(again.tag, 3)).await;
        second.say(Frame::Shutdown { tag }).await;
        let mut found = Vec::new();
        soon(client.read_to_end(&mut found)).await.unwrap();
        assert_eq!(found, [1; 3]);
        assert_eq!(cluster.counted().stale, 5);
        drop(second);
        cluster.is_alone(&mut bystander).await;
    });
}

#[test]
fn who_asks_and_does_not_read_is_given_up() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        let mut stranger = cluster.stranger().await;
        let flood = stranger.flood(&Frame::CloseConnection { tag: Tag(4711) });
        let meanwhile = async {
            for _ in 0..20 {
                bystander.goes_on().await;
            }
        };
        soon(async { tokio::join!(flood, meanwhile) }).await;
        assert_eq!(cluster.counted().unread, 1);
        drop(stranger);
        cluster.is_alone(&mut bystander).await;
    });
}

#[test]
fn a_node_that_is_behind_is_waited_for_where_there_is_no_other() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut stranger = cluster.stranger().await;
        let port = stranger.listen().await;
        let (mut client, offer) = stranger.offer(port).await;
        // This is longer than a node has if there is another node.
        tokio::time::sleep(Duration::from_secs(4)).await;
        let (tag, limit, local) = (offer.tag, 9, offer.local);
        stranger
            .say(Frame::ConnectionAccepted { tag, limit, local })
            .await;
        stranger.say(message(tag, 3)).await;
        let mut found = [0; 3];
        soon(client.read_exact(&mut found)).await.unwrap();
        assert_eq!(found, [1; 3]);
    });
}

#[test]
fn many_sessions_that_break_off_leave_nothing() {
    on(NetworkKind::Tcp, |cluster| async move {
        let mut bystander = Bystander::new(&cluster).await;
        for number in 0..200 {
            let mut stranger = cluster.stranger().await;
            let port = stranger.listen().await;
            // One connection is open, one waits for an answer, and half a frame is about one of them.
            let (_open, offer) = stranger.accept(port).await;
            let (_waits, asked) = stranger.offer(port).await;
            let tag = if number % 2 == 0 {
                offer.tag
            } else {
                asked.tag
            };
            let whole = message(tag, 1000).encode(stranger.epoch);
            stranger.say_bytes(&whole[..number % 1000]).await;
            if number % 3 == 0 {
                stranger.say_bytes(&[0xff; 1000]).await;
            }
        }
        cluster.is_alone(&mut bystander).await;
        let io = cluster.io.as_ref().unwrap();
        until(|| {
            let counters = io.report().counters;
            let read = |counter: &AtomicU64| counter.load(Relaxed);
            let resets = read(&counters.reset_by_node) + read(&counters.reset_by_client);
            let ended = resets + read(&counters.unserved) + read(&counters.finished);
            (ended + 1 == read(&counters.accepted)).then_some(())
        })
        .await;
        // This is the bystander's connection.
        until(|| (io.report().nodes[0].gauges.connections == 1).then_some(())).await;
    });
}
