//! What it costs to pass a response on, milliseconds of a processor for each gigabyte:
//!
//! ```text
//! cargo run --release -p baton-net --example pass_cost [ROUNDS]
//! ```
//!
//! A server, whatever is between, and a client, each in a thread of its own, over the loopback. Counted is the
//! thread between: with buffers, as any program would, and as the agent of resumed responses does it.

#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

#[path = "../src/resume/stream.rs"]
#[allow(dead_code, reason = "only the passing on is measured")]
mod stream;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use tokio::io::copy_bidirectional_with_sizes;

const GIGABYTE: usize = 1 << 30;
const BUFFER: usize = 64 * 1024;
const ROUNDS: usize = 5;

fn main() {
    let rounds = std::env::args().nth(1);
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    println!("{:>10} {:>12} {:>12}", "", "CPU ms/GB", "MB/s");
    for _ in 0..rounds {
        for (name, in_kernel) in [("buffers", false), ("splice", true)] {
            let (used, took) = pass_a_gigabyte(in_kernel);
            let rate = 1000.0 / took.as_secs_f64();
            println!("{name:>10} {:>12} {rate:>12.0}", used.as_millis());
        }
    }
}

fn pass_a_gigabyte(in_kernel: bool) -> (Duration, Duration) {
    let ((mut server, from_server), (to_client, mut client)) = (pair(), pair());
    let server = thread::spawn(move || {
        let some = vec![7; 1 << 20];
        for _ in 0..GIGABYTE / some.len() {
            server.write_all(&some).unwrap();
        }
        server.shutdown(Shutdown::Both).unwrap();
    });
    let client = thread::spawn(move || {
        let mut some = vec![0; 1 << 20];
        let mut read = 0;
        loop {
            match client.read(&mut some).unwrap() {
                0 => break,
                bytes => read += bytes,
            }
        }
        client.shutdown(Shutdown::Write).unwrap();
        read
    });
    let between = thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let (before, begun) = (used(), Instant::now());
        runtime.block_on(async {
            let [mut client, mut server] = [to_client, from_server].map(|stream| {
                stream.set_nonblocking(true).unwrap();
                tokio::net::TcpStream::from_std(stream).unwrap()
            });
            if in_kernel {
                stream::pass_both_ways(&mut client, &mut server, GIGABYTE as u64)
                    .await
                    .unwrap();
            } else {
                let copied =
                    copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
                copied.unwrap();
            }
        });
        (used() - before, begun.elapsed())
    });
    let measured = between.join().unwrap();
    server.join().unwrap();
    assert_eq!(client.join().unwrap(), GIGABYTE);
    measured
}

/// By this thread, as yet.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    let all = usage.user_time() + usage.system_time();
    Duration::from_micros(all.num_microseconds().cast_unsigned())
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}
