//! The data server's door against a model, in virtual time: random sequences of packets go through the programs of
//! `bpf/data_server`, compiled for this machine ([`native`]). README.md says what is real and what is a model. These
//! rules must hold after each step:
//!
//! - A server's socket accepts only bytes of requests that its pool may answer, even if a client sends them again in
//!   other segments or with other content. It accepts nothing behind the last request that its door has let in
//!   ([`world`]).
//! - If a client never changes what it has sent, no byte of it is read by two servers.
//! - A door and its server's own reading ([`http`]) agree where the next request begins. If the client never changes
//!   what it has sent, that is where the request really begins ([`script`]).
//! - A packet of somebody who knows no sequence number changes nothing.
//! - If a client sends again what was not acknowledged, all of it is read after a bounded number of retransmissions
//!   ([`recovery`]).
//!
//! Sequences follow from their seeds, which are the same in every run, so that the result for a change does not
//! depend on chance. `BATON_TEST_LONG` tries other seeds, and 167 times as many sequences, 10^8 in all.
//! `BATON_MODEL_SEED` repeats a run, and `BATON_MODEL_SEQUENCES` says how many sequences each test runs. A failing
//! sequence is printed as short as it still fails.

#![cfg(test)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http;
mod native;
mod recovery;
mod script;
mod shrink;
mod socket;
mod step;
mod world;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use fastrand::Rng;

use crate::native::Programs;
use crate::step::{Mix, Trial};
use crate::world::{Checked, World};

const FIRST_SEED: u64 = 1;
/// Seeds that have failed once. With the first, more of a request was about to reach the agent's socket when the
/// agent gave the connection back. With the second, a HEAD behind the last line of a chunked body was taken for the
/// request to which this line belonged. With the third, the door read more of a body in a client's own packet than the
/// agent then gave to TCP, and waited for the rest, of which the client knew that it had come.
const FAILED_ONCE: [u64; 3] = [
    1435090702047634353,
    10233184579184716995,
    16983347051467848800,
];

const HONEST: Mix = Mix {
    has_agent: true,
    cuts_heads: true,
    is_hostile: false,
    has_forger: true,
    has_restarts: false,
    has_drains: false,
};

#[test]
fn honest_clients() {
    check(HONEST, 200_000);
}

#[test]
fn honest_clients_without_an_agent() {
    let mix = Mix {
        has_agent: false,
        cuts_heads: false,
        ..HONEST
    };
    check(mix, 150_000);
}

#[test]
fn honest_clients_whose_servers_restart() {
    let mix = Mix {
        has_restarts: true,
        ..HONEST
    };
    check(mix, 100_000);
}

#[test]
fn honest_clients_whose_servers_drain() {
    for has_restarts in [false, true] {
        let mix = Mix {
            has_restarts,
            has_drains: true,
            ..HONEST
        };
        check(mix, 50_000);
    }
}

#[test]
fn clients_who_change_what_was_sent() {
    check(
        Mix {
            is_hostile: true,
            ..HONEST
        },
        150_000,
    );
}

#[test]
fn clients_who_change_what_was_sent_without_an_agent() {
    check(
        Mix {
            is_hostile: true,
            has_agent: false,
            cuts_heads: false,
            ..HONEST
        },
        100_000,
    );
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|value| value.parse().unwrap())
}

fn check(mix: Mix, sequences: u64) {
    let (times, seed) = match env::var_os("BATON_TEST_LONG") {
        Some(_) => (167, fastrand::u64(..)),
        None => (1, FIRST_SEED),
    };
    let sequences = number("BATON_MODEL_SEQUENCES").unwrap_or(sequences * times);
    let first = number("BATON_MODEL_SEED").unwrap_or(seed);
    println!("BATON_MODEL_SEED={first} BATON_MODEL_SEQUENCES={sequences}");
    let began = Instant::now();
    let mut programs = Programs::new();
    let seeds = (0..sequences).map(|number| first.wrapping_add(number));
    for seed in seeds.chain(FAILED_ONCE) {
        let trial = Trial::random(&mut Rng::with_seed(seed), mix);
        if let Err(failure) = run(&mut programs, &trial, false) {
            println!("seed {seed}: {failure}");
            let least =
                shrink::shrink(&trial, &mut |less| run(&mut programs, less, false).is_err());
            let failure = run(&mut programs, &least, true).unwrap_err();
            panic!("BATON_MODEL_SEED={seed} BATON_MODEL_SEQUENCES=1: {failure}");
        }
    }
    println!("{sequences} sequences in {:?}", began.elapsed());
}

/// Runs one sequence. A panic of the model's own arithmetic is a failure as well.
fn run(programs: &mut Programs, trial: &Trial, tells: bool) -> Checked {
    catch_unwind(AssertUnwindSafe(|| run_steps(programs, trial, tells)))
        .unwrap_or_else(|_| Err("the model panics".into()))
}

fn run_steps(programs: &mut Programs, trial: &Trial, tells: bool) -> Checked {
    let mut world = World::new(programs, trial, tells);
    if tells {
        println!(
            "{:?} {:?} {:?}",
            trial.mix, trial.requests, world.stream.requests
        );
    }
    for step in &trial.steps {
        if tells {
            println!("   {step:?}");
        }
        world.run_step(step)?;
    }
    if trial.mix.is_hostile {
        return Ok(());
    }
    if tells {
        println!("   recovery");
    }
    recovery::recover(&mut world)
}
