//! Tests of what a terminal of 80 by 24 shows.

use std::time::Duration;

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers},
};

use super::*;
use baton_node::status::{Status, example};

/// The view of the example status, one second after an earlier answer.
fn view() -> View {
    let before = example();
    let mut now: Status = before.clone();
    if let Some(tally) = &mut now.nodes[1].tally {
        tally.requests += 1234;
        tally.bytes += 5_600_000;
        tally.handovers += 3;
    }
    if let Some(tally) = &mut now.services[0].routes[0].tally {
        tally.requests += 2;
    }
    now.services[0].taking.clear();
    now.services[0]
        .out
        .push(("ds1".into(), "its own check fails".into()));
    now.counters.insert("cs_forward".into(), 900);
    View::of(&now, Some((&before, Duration::from_secs(1))))
}

fn shown(view: &View, screen: &Screen, trouble: Option<&str>, size: (u16, u16)) -> Vec<String> {
    let mut terminal =
        Terminal::new(TestBackend::new(size.0, size.1)).expect("the test backend does no I/O");
    terminal
        .draw(|frame| {
            draw(frame, view, screen, trouble);
        })
        .expect("the test backend does no I/O");
    let buffer = terminal.backend().buffer();
    let line = |y: u16| {
        (0..size.0)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
    };
    let lines = (0..size.1).map(line);
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn press(screen: &mut Screen, code: KeyCode) {
    screen.handle(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)));
}

const SMALL: (u16, u16) = (80, 24);

#[test]
fn the_nodes() {
    let lines = shown(&view(), &Screen::default(), None, SMALL);
    assert_eq!(
        lines[..6],
        [
            "cs1 (cs) on eth0, XDP native, up 35 s",
            "1234 requests/s, 5.6 MB/s, 3.0 handovers/s; flows 12 of 1048576 (0.0 %)",
            " Nodes │ Pools and routes │ Counters",
            "NODE       ROLES STATE     HEALTH                 CPU    FLOWS   REQ/S   BYTES/S",
            "cs1        cs    this node -                        -        -       -         -",
            "ds1        ds    alive     its own check fails  41.7%        1    1234    5.6 MB",
        ]
    );
    assert!(lines[6..23].iter().all(String::is_empty));
    assert_eq!(
        lines[23],
        "q quit   Tab page   left/right sort   up/down scroll"
    );
}

#[test]
fn pools_and_routes() {
    let mut screen = Screen::default();
    press(&mut screen, KeyCode::Tab);
    let lines = shown(&view(), &screen, None, SMALL);
    assert_eq!(
        lines[3..7],
        [
            "POOL, ROUTE                         REQUESTS     REQ/S   BYTES/S   MOVES/S   503",
            "web                                        7         0       0 B         0     1",
            "web/static                                 7         0       0 B         0     1",
            "web/static /s/                             9       2.0       0 B         0     1",
        ]
    );
    // Three times to the right sorts by requests a second.
    for _ in 0..3 {
        press(&mut screen, KeyCode::Right);
    }
    let lines = shown(&view(), &screen, None, SMALL);
    assert!(lines[4].starts_with("web/static /s/ "), "{lines:?}");
}

#[test]
fn counters_that_are_not_zero() {
    let mut screen = Screen::default();
    press(&mut screen, KeyCode::BackTab);
    let lines = shown(&view(), &screen, None, SMALL);
    let row = |name: &str, total: u32, rate: &str| format!("{name:<45}{total:>20} {rate:>14}");
    assert_eq!(lines[4], row("cs_forward", 900, "900"));
    assert_eq!(lines[5], row("cs_syn", 1, "0"));
    assert_eq!(lines[6], "");
}

#[test]
fn sorted_by_name_and_scrolled_to_the_last() {
    let mut screen = Screen::default();
    let mut view = view();
    view.nodes.reverse();
    let first = |screen: &Screen| shown(&view, screen, None, SMALL)[4].clone();
    assert!(first(&screen).starts_with("ds1"));
    press(&mut screen, KeyCode::Right);
    assert!(first(&screen).starts_with("cs1"));
    // Unknown values come last.
    for _ in 0..6 {
        press(&mut screen, KeyCode::Right);
    }
    assert!(first(&screen).starts_with("ds1"));
    for _ in 0..100 {
        press(&mut screen, KeyCode::PageDown);
    }
    assert!(first(&screen).starts_with("cs1"));
}

#[test]
fn what_is_wrong_stands_above_the_rows() {
    let mut view = view();
    view.warnings.push("clock: ds1 is 37 s behind".into());
    let lines = shown(&view, &Screen::default(), Some("no node answers"), SMALL);
    assert_eq!(lines[3], "clock: ds1 is 37 s behind");
    assert_eq!(lines[4], "no node answers");
    assert!(lines[5].starts_with("NODE"));
    for number in 2..6 {
        view.warnings.push(format!("clock: ds{number} is behind"));
    }
    let lines = shown(&view, &Screen::default(), Some("no node answers"), SMALL);
    assert_eq!(lines[6], "no node answers");
    assert!(lines[7].starts_with("NODE"));
}

/// A terminal that is too small shows less, and nothing fails.
#[test]
fn terminals_of_every_size() {
    for width in [1, 2, 10, 40, 79, 300] {
        for height in [1, 2, 3, 5, 9, 100] {
            let mut screen = Screen::default();
            for _ in Page::ALL {
                press(&mut screen, KeyCode::Tab);
                shown(&view(), &screen, Some("trouble"), (width, height));
            }
        }
    }
}
