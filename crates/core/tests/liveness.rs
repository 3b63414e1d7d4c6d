//! Which hosts live and which are dead, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::Ipv4Addr;
use std::time::Duration;

use baton_core::liveness::{Change, Liveness, TICK};
use baton_core::{Moment, listening::ListeningClock};
use baton_wire::Address;
use proptest::prelude::*;

const HELLO: Duration = Duration::from_millis(200);
const DEAD: Duration = Duration::from_secs(1);

fn host(last: u8) -> Address {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn at(ms: u64) -> Moment {
    Moment::after_epoch(Duration::from_millis(ms))
}

fn watching(hosts: &[Address]) -> Liveness {
    let mut liveness = Liveness::new(at(0), HELLO, DEAD);
    liveness.watch(at(0), hosts.iter().copied(), hosts.len(), HELLO, DEAD);
    liveness
}

/// Ticks from `from` to `to` ms, and returns what changed.
fn tick(liveness: &mut Liveness, from: u64, to: u64) -> Vec<Change> {
    for ms in (from..=to).step_by(TICK.as_millis() as usize) {
        liveness.tick(at(ms));
    }
    std::iter::from_fn(|| liveness.poll()).collect()
}

#[test]
fn silence_of_daemon_and_program_is_death_and_a_sign_is_life() {
    let mut liveness = watching(&[host(1)]);
    assert!(tick(&mut liveness, 50, 950).is_empty());
    assert_eq!(
        tick(&mut liveness, 1000, 1050).first(),
        Some(&Change::Died(host(1)))
    );
    assert!(liveness.is_dead(host(1)));
    // The death is reported once, and the host is still asked.
    assert!(tick(&mut liveness, 1100, 5000).is_empty());
    assert_eq!(liveness.tick(at(5050)), vec![host(1)]);
    liveness.handle_sign(at(5060), host(1));
    assert_eq!(liveness.poll(), Some(Change::Lives(host(1))));
    assert!(!liveness.is_dead(host(1)));
}

#[test]
fn who_says_hello_is_not_asked() {
    let mut liveness = watching(&[host(1), host(2)]);
    for ms in (50..2000).step_by(50) {
        liveness.handle_sign(at(ms), host(1));
        assert!(!liveness.tick(at(ms)).contains(&host(1)), "at {ms}");
    }
    assert!(liveness.is_dead(host(2)) && !liveness.is_dead(host(1)));
}

#[test]
fn who_did_not_listen_has_heard_nobody_and_that_is_nobodys_death() {
    let mut liveness = watching(&[host(1)]);
    let mut clock = ListeningClock::new(at(0), 2 * HELLO);
    liveness.tick(clock.look(at(200)));
    // This daemon does not run for a minute.
    liveness.tick(clock.look(at(60_000)));
    assert_eq!(liveness.poll(), None);
    // From now on the daemon listens, and hears nothing.
    for ms in (60_050..61_500).step_by(50) {
        liveness.tick(clock.look(at(ms)));
    }
    let died = liveness.poll();
    assert_eq!(died, Some(Change::Died(host(1))));
}

#[test]
fn strangers_and_those_no_longer_watched_are_nothing() {
    let mut liveness = watching(&[host(1)]);
    liveness.handle_sign(at(10), host(9));
    assert_eq!(liveness.poll(), None);
    liveness.watch(at(20), [host(2)], 1, HELLO, DEAD);
    assert!(tick(&mut liveness, 50, 950).is_empty());
    assert!(!liveness.is_dead(host(1)));
}

/// Ticks from `from` to `to` ms, while the hosts in `signing` give a sign every 200 ms. Returns what changed.
fn heard(liveness: &mut Liveness, (from, to): (u64, u64), signing: &[Address]) -> Vec<Change> {
    for ms in (from..=to).step_by(50) {
        if ms % 200 == 0 {
            for host in signing {
                liveness.handle_sign(at(ms), *host);
            }
        }
        liveness.tick(at(ms));
    }
    std::iter::from_fn(|| liveness.poll()).collect()
}

#[test]
fn who_hears_nobody_is_cut_off_itself() {
    let hosts = [host(1), host(2), host(3)];
    let mut liveness = watching(&hosts);
    assert!(heard(&mut liveness, (50, 2000), &hosts).is_empty());
    assert!(heard(&mut liveness, (2050, 9000), &[]).is_empty());
    // The network is back: hosts that live have as long as ever to be heard, and one that is not heard by then is dead.
    assert!(heard(&mut liveness, (9050, 9950), &hosts[..2]).is_empty());
    let died = heard(&mut liveness, (10_000, 10_500), &hosts[..2]);
    assert_eq!(died, [Change::Died(host(3))]);
}

#[test]
fn somebody_who_is_not_watched_is_a_witness() {
    let mut liveness = watching(&[host(1), host(2)]);
    let died = heard(&mut liveness, (50, 2000), &[host(9)]);
    assert_eq!(died.len(), 2);
}

#[test]
fn the_dead_can_be_asked_for() {
    let mut liveness = watching(&[host(1), host(2)]);
    heard(&mut liveness, (50, 2000), &[host(2)]);
    let dead: Vec<_> = liveness.dead().collect();
    assert_eq!(dead, [host(1)]);
}

proptest! {
    /// A host that gives a sign at least every `DEAD - 2 ticks` never dies. Deaths and returns to life alternate.
    #[test]
    fn only_the_silent_die(gaps in prop::collection::vec(0u64..2500, 1..60)) {
        let mut liveness = watching(&[host(1)]);
        let (mut now, mut dead) = (0, false);
        for gap in gaps {
            let signed = now;
            while now < signed + gap {
                now += 50;
                liveness.tick(at(now));
            }
            let changes: Vec<_> = std::iter::from_fn(|| liveness.poll()).collect();
            if gap <= 900 {
                prop_assert!(changes.is_empty());
            }
            if gap >= 1100 {
                prop_assert_eq!(changes.len(), 1);
            }
            dead |= !changes.is_empty();
            liveness.handle_sign(at(now), host(1));
            let lives: Vec<_> = std::iter::from_fn(|| liveness.poll()).collect();
            prop_assert_eq!(lives.len(), usize::from(dead));
            dead = false;
        }
    }
}
