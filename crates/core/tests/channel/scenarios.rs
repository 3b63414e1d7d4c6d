//! Single cases.

use std::time::Duration;

use baton_core::Moment;
use baton_core::channel::{IDLE_TICK, Pace, TICK, WINDOW};

use crate::line::Line;

const SOON: Option<Duration> = Some(Duration::from_millis(1));
const LOST: Option<Duration> = None;

/// Returns a line on which two messages have arrived.
fn line_in_use() -> Line {
    let mut line = Line::beginning_at(100);
    line.tick();
    line.send(SOON);
    line.send(SOON);
    line.ticks(10);
    line
}

#[test]
fn nothing_lost_is_nothing_asked() {
    let mut line = line_in_use();
    for _ in 0..1000 {
        line.send(SOON);
        line.tick();
    }
    assert_eq!(line.asked_numbers(), []);
}

#[test]
fn a_hole_is_asked_for_at_the_second_look() {
    let mut line = line_in_use();
    line.send(LOST);
    line.send(SOON);
    let sent = line.now();
    line.ticks(2);
    assert_eq!(line.asked, [(sent + TICK * 2, 102)]);
}

#[test]
fn what_still_does_not_come_is_asked_for_three_times() {
    for unanswered in 0..5 {
        let mut line = line_in_use();
        line.unanswered = unanswered;
        line.send(LOST);
        line.send(SOON);
        line.ticks(50);
        let times = (unanswered + 1).min(3);
        assert_eq!(line.asked_numbers(), vec![102; times], "{unanswered}");
        let apart = line.asked.windows(2).map(|two| two[1].0.since(two[0].0));
        assert!(apart.into_iter().all(|apart| apart == TICK * 3));
    }
}

#[test]
fn the_last_before_a_pause_is_asked_for_after_a_sync() {
    let mut line = line_in_use();
    line.send(LOST);
    let sent = line.now();
    line.ticks(40);
    assert_eq!(line.asked_numbers(), [102]);
    assert!(line.asked[0].0.since(sent) <= Duration::from_millis(30));
}

#[test]
fn what_was_overtaken_is_not_lost() {
    let mut line = line_in_use();
    line.send(Some(Duration::from_millis(9)));
    line.send(SOON);
    line.ticks(20);
    assert_eq!(line.asked_numbers(), []);
}

#[test]
fn numbers_begin_anew_after_the_highest() {
    let mut line = Line::beginning_at(65_530);
    line.tick();
    for number in 65_530u32..65_550 {
        let lost = number == 65_535 || number == 65_537;
        line.send(if lost { LOST } else { SOON });
        line.tick();
    }
    line.ticks(10);
    assert_eq!(line.asked_numbers(), [65_535, 1]);
}

#[test]
fn a_sender_that_begins_anew_is_followed() {
    for restart in [5_000, 40_000, 60_000] {
        let mut line = line_in_use();
        line.restart_at(restart);
        line.ticks(2);
        // Old numbers hide the new ones until the sender has paused once.
        line.send(SOON);
        line.ticks(20);
        line.asked.clear();
        line.send(SOON);
        line.send(LOST);
        line.send(SOON);
        line.ticks(20);
        assert_eq!(line.asked_numbers(), [restart + 2], "{restart}");
    }
}

#[test]
fn of_a_long_silence_of_the_daemon_only_the_window_is_asked_for() {
    let mut line = line_in_use();
    for _ in 0..3 * WINDOW {
        line.send(LOST);
    }
    line.send(SOON);
    line.ticks(2);
    assert_eq!(line.asked.len(), WINDOW - 1);
}

#[test]
fn looks_become_rare_when_nothing_moves() {
    let mut pace = Pace::default();
    let mut now = Moment::default();
    assert_eq!(pace.after_look(now, true), TICK);
    now = now + Duration::from_millis(999);
    assert_eq!(pace.after_look(now, false), TICK);
    now = now + TICK;
    assert_eq!(pace.after_look(now, false), IDLE_TICK);
    assert_eq!(pace.after_look(now, true), TICK);
}
