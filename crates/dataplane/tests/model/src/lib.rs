//! The data server's door against a model, in virtual time: random sequences of packets go through the programs of `bpf/data_server`,
//! compiled for this machine ([`native`]). README.md says what is real and what is a model. What must hold after each step:
//!
//! - A server's socket accepts bytes of those requests only that its pool may answer, whatever was sent again in other cuts or
//!   with other content; and nothing behind the last request that its door has let in ([`world`]).
//! - No byte of a client that tells everybody the same is read by two servers.
//! - A door and its server's own reading ([`http`]) agree where the next request begins; and of a client that tells everybody
//!   the same, that is where it does ([`script`]).
//! - A packet of somebody who knows no sequence number changes nothing.
//! - Who sends again what was not acknowledged is read to the end, after a bounded number of times ([`recovery`]).
//!
//! Sequences follow from their seeds, which are the same in every run: chance decides nothing about a change. Other seeds are
//! tried with `BATON_TEST_LONG`, and 167 times as many sequences, 10^8 in all. `BATON_MODEL_SEED` repeats a run,
//! `BATON_MODEL_SEQUENCES` says how many sequences each test runs. A sequence that fails is printed as short as it still fails.

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
/// With which something was wrong once: more of a request was about to reach the agent's socket when the agent gave it back; and behind
/// the last line of a chunked body a HEAD was taken for the request that this line belonged to.
const FAILED_ONCE: [u64; 2] = [1435090702047634353, 10233184579184716995];

const HONEST: Mix = Mix {
    has_agent: true,
    cuts_heads: true,
    is_hostile: false,
    has_forger: true,
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

/// One sequence. A panic of the model's own arithmetic is a failure as well.
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
