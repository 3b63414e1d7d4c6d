//! Hundreds of connections, or a thousand in long runs. Every tenth is not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_saps::{Family, VirtualStream};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::bytes::pattern;
use super::cluster::{BUFFER, client, on_each, until};

const BYTES: usize = 100_000;

/// The number of connections. With a thousand, and with other tests at the same time, this process may be silent for
/// longer than a link allows.
fn connections() -> usize {
    std::env::var_os("BATON_TEST_LONG").map_or(300, |_| 1000)
}

#[test]
fn a_tenth_that_does_not_read_holds_up_nobody() {
    let connections = connections();
    // Each connection needs two file descriptors, both in this process.
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(soft.max(8192)), hard).unwrap();
    on_each(move |cluster| async move {
        let agent = cluster.agent("app1");
        let mut listening = agent.listen(0, Family::V4).await.unwrap();
        let port = listening.port();
        // The program echoes, unless the first byte says that it must not read on.
        let stalled: Arc<AtomicUsize> = Arc::default();
        let release = Arc::new(Semaphore::new(0));
        let (count, gate) = (Arc::clone(&stalled), Arc::clone(&release));
        let program = tokio::spawn(async move {
            let mut served = JoinSet::new();
            for _ in 0..connections {
                let stream = listening.accept().await.unwrap().stream;
                served.spawn(serve(stream, Arc::clone(&count), Arc::clone(&gate)));
            }
            while let Some(done) = served.join_next().await {
                done.unwrap();
            }
        });
        let mut slow = JoinSet::new();
        let mut quick = JoinSet::new();
        for number in 0..connections {
            if number % 10 == 0 {
                slow.spawn(round(port, number, b's'));
                // Most of the stalled connections begin first.
            } else {
                quick.spawn(round(port, number, b'q'));
            }
        }
        while let Some(done) = quick.join_next().await {
            done.unwrap();
        }
        // All others are done, and these still wait: none has got more than its own buffer holds.
        until(|| (stalled.load(Ordering::Relaxed) == connections / 10).then_some(())).await;
        assert!(slow.try_join_next().is_none());
        let report = agent.report();
        assert!(report.gauges.buffered <= (connections / 10) as u64 * u64::from(BUFFER));
        release.add_permits(connections);
        while let Some(done) = slow.join_next().await {
            done.unwrap();
        }
        program.await.unwrap();
        let channels = cluster.io.as_ref().unwrap().report().channels;
        assert_eq!(channels.made, connections as u64);
        assert!(channels.stalls > 0);
        assert_eq!(
            (channels.beyond_credit, channels.faults, channels.unknown),
            (0, 0, 0)
        );
    });
}

async fn serve(mut stream: VirtualStream, stalled: Arc<AtomicUsize>, release: Arc<Semaphore>) {
    let kind = stream.read_u8().await.unwrap();
    if kind == b's' {
        stalled.fetch_add(1, Ordering::Relaxed);
        release.acquire().await.unwrap().forget();
    }
    let (mut reader, mut writer) = split(stream);
    copy(&mut reader, &mut writer).await.unwrap();
    writer.shutdown().await.unwrap();
}

async fn round(port: u16, number: usize, kind: u8) {
    // Connections that stall send far more than one buffer holds.
    let length = if kind == b's' { 10 * BYTES } else { BYTES };
    let sent = pattern(length, number);
    let mut client = client(port).await;
    client.write_u8(kind).await.unwrap();
    let (mut reader, mut writer) = client.split();
    let writing = async {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    };
    let mut found = Vec::new();
    let reading = async {
        let read = tokio::time::timeout(Duration::from_secs(100), reader.read_to_end(&mut found));
        read.await.unwrap().unwrap();
    };
    tokio::join!(writing, reading);
    assert!(found == sent, "connection {number}");
}
