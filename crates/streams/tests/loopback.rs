//! Streams between nodes at addresses of this host's loopback interface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use baton_streams::{Ask, LONGEST, StreamMessage, Streams, Topic};
use baton_wire::{ClusterKey, KeyRing, Keys};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long to wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for what must not happen.
const IN_VAIN: Duration = Duration::from_millis(500);

fn node(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 77, last)
}

fn secret(byte: u8) -> ClusterKey {
    ClusterKey::from_bytes([byte; 32]).unwrap()
}

/// The keys that node `own` of nodes 1 to 3 shares with the others.
fn ring(own: u8, current: u8, previous: Option<u8>) -> KeyRing {
    let shared = |other| Keys {
        previous: previous.map(|byte| secret(byte).pair(node(own), node(other))),
        ..Keys::only(secret(current).pair(node(own), node(other)))
    };
    let others = (1..=3).map(|other| (node(other), shared(other)));
    KeyRing::new(shared(own), others)
}

/// A port for the nodes of one test.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(17728);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn open(own: u8, port: u16, keys: KeyRing) -> (Streams, mpsc::Receiver<StreamMessage>) {
    let (streams, incoming) = Streams::open(node(own), port, keys).unwrap();
    (streams, incoming.heard)
}

async fn heard(from: &mut mpsc::Receiver<StreamMessage>) -> (Ipv4Addr, Vec<u8>) {
    let heard = timeout(PATIENCE, from.recv()).await.unwrap().unwrap();
    assert_eq!(heard.topic, Topic::Sizes);
    (heard.from, heard.text.to_vec())
}

async fn nothing(from: &mut mpsc::Receiver<StreamMessage>) {
    let heard = timeout(IN_VAIN, from.recv()).await;
    assert!(heard.is_err(), "{heard:?}");
}

#[tokio::test]
async fn what_is_told_is_heard_and_who_told_it() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    let (mut two, _) = open(2, port, ring(2, 7, None));
    let (_three, mut to_three) = open(3, port, ring(3, 7, None));
    one.tell(node(3), Topic::Sizes, b"one");
    assert_eq!(heard(&mut to_three).await, (node(1), b"one".to_vec()));
    let long = vec![5; LONGEST];
    two.tell(node(3), Topic::Sizes, &long);
    assert!(heard(&mut to_three).await == (node(2), long));
    one.tell(node(3), Topic::Sizes, b"one");
    one.tell(node(3), Topic::Sizes, b"");
    assert_eq!(heard(&mut to_three).await, (node(1), b"".to_vec()));
    nothing(&mut to_three).await;
}

#[tokio::test]
async fn only_the_newest_is_told_and_again_to_whom_begins_anew() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    one.tell(node(2), Topic::Sizes, b"old");
    one.tell(node(2), Topic::Sizes, b"new");
    for _ in 0..3 {
        // The port is free once the last task of the earlier streams has ended.
        let (_two, mut to_two) = loop {
            match Streams::open(node(2), port, ring(2, 7, None)) {
                Ok((streams, incoming)) => break (streams, incoming.heard),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        assert_eq!(heard(&mut to_two).await, (node(1), b"new".to_vec()));
        nothing(&mut to_two).await;
    }
}

#[tokio::test]
async fn nobody_is_believed_under_another_key() {
    let port = port();
    let (mut one, mut to_one) = open(1, port, ring(1, 8, None));
    let (mut two, mut to_two) = open(2, port, ring(2, 7, None));
    one.tell(node(2), Topic::Sizes, b"one");
    two.tell(node(1), Topic::Sizes, b"two");
    nothing(&mut to_two).await;
    nothing(&mut to_one).await;
    // With the same key the text arrives.
    one.rekey(ring(1, 7, None));
    assert_eq!(heard(&mut to_two).await, (node(1), b"one".to_vec()));
    assert_eq!(heard(&mut to_one).await, (node(2), b"two".to_vec()));
}

/// The intruder knows the keys that it shares with the others, which is all that can be stolen from one node.
#[tokio::test]
async fn a_node_can_speak_for_itself_alone() {
    let port = port();
    let thief = KeyRing::new(
        Keys::only(secret(7).pair(node(1), node(1))),
        (1..=3).map(|other| {
            (
                node(other),
                Keys::only(secret(7).pair(node(1), node(other))),
            )
        }),
    );
    let (mut at_two, _) = open(2, port, thief);
    let (_three, mut to_three) = open(3, port, ring(3, 7, None));
    at_two.tell(node(3), Topic::Sizes, b"forged");
    nothing(&mut to_three).await;
}

#[tokio::test]
async fn a_stranger_is_not_heard() {
    let port = port();
    let pair = Keys::only(secret(7).pair(node(9), node(2)));
    let stranger = KeyRing::new(pair, [(node(2), pair)]);
    let (mut nine, _) = open(9, port, stranger);
    let (_two, mut to_two) = open(2, port, ring(2, 7, None));
    nine.tell(node(2), Topic::Sizes, b"strange");
    nothing(&mut to_two).await;
}

#[tokio::test]
async fn keys_are_rotated_without_a_loss() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    let (two, mut to_two) = open(2, port, ring(2, 7, None));
    one.tell(node(2), Topic::Sizes, b"before");
    assert_eq!(heard(&mut to_two).await.1, b"before");
    // The next key is first accepted, then used, and then the old one is removed.
    two.rekey(ring(2, 7, Some(8)));
    one.rekey(ring(1, 7, Some(8)));
    one.rekey(ring(1, 8, Some(7)));
    one.tell(node(2), Topic::Sizes, b"half way");
    while heard(&mut to_two).await.1 != b"half way" {}
    two.rekey(ring(2, 8, Some(7)));
    two.rekey(ring(2, 8, None));
    one.rekey(ring(1, 8, None));
    one.tell(node(2), Topic::Sizes, b"after");
    while heard(&mut to_two).await.1 != b"after" {}
}

#[tokio::test]
async fn a_stream_ends_with_the_key_that_it_was_made_under() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, Some(8)));
    let (two, mut to_two) = open(2, port, ring(2, 8, Some(7)));
    one.tell(node(2), Topic::Sizes, b"before");
    assert_eq!(heard(&mut to_two).await.1, b"before");
    two.rekey(ring(2, 8, None));
    nothing(&mut to_two).await;
    one.tell(node(2), Topic::Sizes, b"after");
    nothing(&mut to_two).await;
}

#[tokio::test]
async fn who_is_no_node_any_more_is_told_nothing() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    one.tell(node(2), Topic::Sizes, b"one");
    one.tell_only(&[node(3)]);
    let (_two, mut to_two) = open(2, port, ring(2, 7, None));
    nothing(&mut to_two).await;
}

#[tokio::test]
async fn a_text_that_is_forgotten_for_a_node_is_not_told() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    for to in [node(2), node(3)] {
        one.tell(to, Topic::Sizes, b"one");
    }
    one.tell_no_others(&[node(3)], Topic::Sizes);
    let (_two, mut to_two) = open(2, port, ring(2, 7, None));
    let (_three, mut to_three) = open(3, port, ring(3, 7, None));
    assert_eq!(heard(&mut to_three).await, (node(1), b"one".to_vec()));
    nothing(&mut to_two).await;
}

#[tokio::test]
async fn a_port_that_another_program_has_is_named() {
    let port = port();
    let (_one, _) = open(1, port, ring(1, 7, None));
    let error = Streams::open(node(1), port, ring(1, 7, None)).unwrap_err();
    let error = error.to_string();
    assert!(error.contains(&format!("127.0.77.1:{port}")), "{error}");
    assert!(error.contains("stream_port"), "{error}");
}

#[tokio::test]
async fn a_question_is_answered_by_whom_it_is_for() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    let two = Streams::open(node(2), port, ring(2, 7, None)).unwrap();
    let (_streams, mut incoming) = two;
    let ask = one.asking(node(2));
    let answering = tokio::spawn(async move {
        while let Some(question) = incoming.questions.recv().await {
            assert_eq!(question.from, node(1));
            // As many answers as its first byte says, each of which is the last byte.
            if let [number, .., answer] = question.text[..] {
                for _ in 0..number {
                    question.answers.send(answer).await.unwrap();
                }
            }
        }
    });
    let long = vec![7; LONGEST];
    for text in [&b"\x02a"[..], b"\x00", b"", &long] {
        let answers = answers(ask.clone(), text.to_vec()).await;
        let [number, .., answer] = text else {
            assert!(answers.is_empty());
            continue;
        };
        assert_eq!(answers, vec![*answer; (*number).into()]);
    }
    let many = (0..100).map(|number| answers(ask.clone(), vec![1, number]));
    let many = futures_of(many).await;
    assert!((0..100).all(|number| many[usize::from(number)] == [number]));
    // Nobody is at this address.
    let nobody = one.asking(node(9));
    assert!(timeout(IN_VAIN, nobody.ask(b"one")).await.is_err());
    answering.abort();
}

#[tokio::test]
async fn who_answers_learns_that_nobody_wants_more() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    let two = Streams::open(node(2), port, ring(2, 7, None)).unwrap();
    let (_streams, mut incoming) = two;
    let mut answers = one.asking(node(2)).ask(b"one").await.unwrap();
    let question = incoming.questions.recv().await.unwrap();
    question.answers.send(1).await.unwrap();
    assert_eq!(answers.next().await.unwrap(), 1);
    assert!(!question.answers.is_closed());
    drop(answers);
    timeout(PATIENCE, question.answers.closed()).await.unwrap();
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_does_not_arrive_late() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    let two = Streams::open(node(2), port, ring(2, 7, None)).unwrap();
    let (_streams, mut incoming) = two;
    let ask = one.asking(node(2));
    drop(ask.ask(b"first").await.unwrap());
    let _answers = ask.ask(b"second").await.unwrap();
    let question = incoming.questions.recv().await.unwrap();
    assert_eq!(&question.text[..], b"second");
}

/// All answers to a question.
async fn answers(ask: Ask, text: Vec<u8>) -> Vec<u8> {
    let mut answers = ask.ask(&text).await.unwrap();
    let mut all = Vec::new();
    while let Ok(answer) = answers.next().await {
        all.push(answer);
    }
    all
}

/// Awaits all at the same time.
async fn futures_of(
    asking: impl Iterator<Item = impl Future<Output = Vec<u8>> + Send + 'static>,
) -> Vec<Vec<u8>> {
    let tasks: Vec<_> = asking.map(tokio::spawn).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

#[tokio::test]
async fn a_channel_carries_bytes_both_ways_and_says_how_it_ended() {
    let port = port();
    let (mut one, _) = open(1, port, ring(1, 7, None));
    let (_streams, mut incoming) = Streams::open(node(2), port, ring(2, 7, None)).unwrap();
    let ask = one.asking(node(2));
    for ends_in_order in [true, false] {
        let mut here = ask.open(b"for this", PATIENCE).await.unwrap();
        let opened = timeout(PATIENCE, incoming.channels.recv()).await;
        let opened = opened.unwrap().unwrap();
        assert_eq!((opened.from, &opened.text[..]), (node(1), &b"for this"[..]));
        let (mut text, mut rest) = ([0; 4], Vec::new());
        let mut there = opened.channel;
        here.write_all(b"some").await.unwrap();
        there.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"some");
        there.write_all(b"more").await.unwrap();
        here.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"more");
        if ends_in_order {
            here.shutdown().await.unwrap();
        }
        drop(here);
        let ended = timeout(PATIENCE, there.read_to_end(&mut rest)).await;
        assert_eq!(ended.unwrap().is_ok(), ends_in_order);
    }
}
