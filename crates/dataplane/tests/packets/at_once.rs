//! Frames of which two copies come at the same moment, each on a processor of its own.

use std::{
    hint::spin_loop,
    os::fd::{AsFd as _, BorrowedFd},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use baton_dataplane::sys;
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use crate::node::Node;

/// A thread that has waited for so many turns lets others run: the other one may be waiting for this processor.
const TURNS: u32 = 100_000;

/// Has the connection server handle each of these frames on two processors at the same moment, one frame after the
/// other. Where there is only one processor, its copies come shortly one after the other.
pub fn come_twice_at_once(node: &Node, frames: &[Vec<u8>]) {
    let program = node.connection_server().xdp.as_fd();
    let there = AtomicUsize::new(0);
    thread::scope(|scope| {
        for processor in two_processors() {
            let there = &there;
            scope.spawn(move || come(program, frames, there, &processor));
        }
    });
}

/// Has the frames handled on this processor. `there` counts how often the two threads have come to a frame. This does
/// not panic while the other thread waits.
fn come(program: BorrowedFd<'_>, frames: &[Vec<u8>], there: &AtomicUsize, processor: &CpuSet) {
    let stays = sched_setaffinity(Pid::from_raw(0), processor);
    let outcomes = (1..).zip(frames).map(|(number, frame)| {
        there.fetch_add(1, Ordering::AcqRel);
        let mut turns = 0;
        while there.load(Ordering::Acquire) < 2 * number {
            turns += 1;
            if turns % TURNS == 0 {
                thread::yield_now();
            } else {
                spin_loop();
            }
        }
        sys::run_on_arrival(program, &[], frame, 0)
    });
    let outcomes: Vec<_> = outcomes.collect();
    stays.unwrap();
    outcomes.into_iter().for_each(|outcome| {
        outcome.unwrap();
    });
}

/// Returns two processors on which this thread may run, or the same one twice if there is no other.
fn two_processors() -> [CpuSet; 2] {
    let may_be = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let all = (0..CpuSet::count()).filter(|number| may_be.is_set(*number).unwrap());
    let mut all = all.cycle();
    [(); 2].map(|()| {
        let mut one = CpuSet::new();
        one.set(all.next().unwrap()).unwrap();
        one
    })
}
