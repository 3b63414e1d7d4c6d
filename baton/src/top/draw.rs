//! Draws a view on the screen. All that matters fits into 80 columns by 24 lines.

use std::cmp::Ordering;

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::Line,
    widgets::{Cell, Paragraph, Row, Table, Tabs},
};

use super::{
    rates::{CounterRow, NodeRow, PoolRow, View},
    screen::{Page, Screen},
};
use baton_node::status::Bytes;

/// The most warnings that are shown above the table, a line each.
const NOTES: usize = 4;

/// Draws the whole screen, and returns how many rows the page has. `trouble` says why the view is stale.
pub fn draw(frame: &mut Frame<'_>, view: &View, screen: &Screen, trouble: Option<&str>) -> usize {
    let mut notes: Vec<Line<'_>> = view
        .warnings
        .iter()
        .map(|warning| Line::styled(warning.as_str(), Color::Yellow))
        .collect();
    // A few lines of notes are enough to show that something is wrong. That the view is old is always one of them.
    notes.truncate(NOTES - usize::from(trouble.is_some()));
    notes.extend(trouble.map(|trouble| Line::styled(trouble, Color::Red)));
    let [head, tabs, noted, body, keys] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(notes.len() as u16),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(
        Paragraph::new(vec![view.title.as_str().into(), summary(view).into()]),
        head,
    );
    let selected = Page::ALL.iter().position(|page| *page == screen.page);
    frame.render_widget(
        Tabs::new(Page::ALL.map(Page::title))
            .select(selected)
            .highlight_style(Modifier::REVERSED),
        tabs,
    );
    frame.render_widget(Paragraph::new(notes), noted);
    let rows = draw_rows(frame, body, view, screen);
    let help = "q quit   Tab page   left/right sort   up/down scroll";
    frame.render_widget(Paragraph::new(help).style(Modifier::DIM), keys);
    rows
}

fn summary(view: &View) -> String {
    let mut summary = format!(
        "{} requests/s, {}/s, {} handovers/s",
        number(view.all.requests),
        bytes(view.all.bytes),
        number(view.all.handovers)
    );
    if let Some((live, capacity)) = view.table {
        let percent = 100.0 * f64::from(live) / f64::from(capacity.max(1));
        summary += &format!("; flows {live} of {capacity} ({percent:.1} %)");
    }
    summary
}

/// The text of a cell, and the key by which its row is sorted.
type Column = (String, Key);

#[derive(Clone, Debug, PartialEq)]
enum Key {
    Text(String),
    Number(f64),
}

impl Key {
    /// Orders texts from A on, and numbers from the largest on.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => other.total_cmp(one),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Text(_), Self::Number(_)) => Ordering::Less,
            (Self::Number(_), Self::Text(_)) => Ordering::Greater,
        }
    }
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, view: &View, screen: &Screen) -> usize {
    let (mut rows, widths): (Vec<Vec<Column>>, &[Constraint]) = match screen.page {
        Page::Nodes => (view.nodes.iter().map(node).collect(), &NODE_WIDTHS),
        Page::Pools => (view.pools.iter().map(pool).collect(), &POOL_WIDTHS),
        Page::Counters => (view.counters.iter().map(counter).collect(), &COUNTER_WIDTHS),
    };
    let sorted = screen.sorted_by();
    if let Some(column) = sorted {
        rows.sort_by(|one, other| one[column].1.order(&other[column].1));
    }
    let heads = screen
        .page
        .columns()
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let style = match sorted == Some(index) {
                true => Style::new().add_modifier(Modifier::REVERSED),
                false => Style::new().add_modifier(Modifier::BOLD),
            };
            let head = Line::from(*name).style(style);
            // Numbers are aligned to the right, and so are their heads.
            let is_number = rows
                .first()
                .is_some_and(|row| matches!(row[index].1, Key::Number(_)));
            Cell::from(if is_number {
                head.right_aligned()
            } else {
                head
            })
        });
    let heads = Row::new(heads.collect::<Vec<_>>());
    // The last row always stays in sight.
    let count = rows.len();
    let first = screen.scrolled.min(count.saturating_sub(1));
    let shown = rows.into_iter().skip(first).map(|row| {
        Row::new(row.into_iter().map(|(text, key)| match key {
            Key::Number(_) => Cell::from(Line::from(text).right_aligned()),
            Key::Text(_) => Cell::from(text),
        }))
    });
    let table = Table::new(shown, widths.iter().copied()).header(heads);
    frame.render_widget(table, area);
    count
}

const NODE_WIDTHS: [Constraint; 8] = [
    Constraint::Min(10),
    Constraint::Length(5),
    Constraint::Length(9),
    Constraint::Length(19),
    Constraint::Length(6),
    Constraint::Length(8),
    Constraint::Length(7),
    Constraint::Length(9),
];

fn node(row: &NodeRow) -> Vec<Column> {
    let percent = |permille: u16| format!("{:.1}%", f64::from(permille) / 10.0);
    vec![
        text(&row.name),
        text(&row.roles),
        text(&row.state),
        text(&row.health),
        known(row.cpu_permille, f64::from, percent),
        known(row.flows, f64::from, |flows| flows.to_string()),
        rate(row.rates.requests),
        byte_rate(row.rates.bytes),
    ]
}

const POOL_WIDTHS: [Constraint; 6] = [
    Constraint::Min(24),
    Constraint::Length(10),
    Constraint::Length(9),
    Constraint::Length(9),
    Constraint::Length(9),
    Constraint::Length(5),
];

fn pool(row: &PoolRow) -> Vec<Column> {
    vec![
        text(&row.name),
        total(row.requests),
        rate(row.rates.requests),
        byte_rate(row.rates.bytes),
        rate(row.rates.handovers),
        total(row.unavailable),
    ]
}

const COUNTER_WIDTHS: [Constraint; 3] = [
    Constraint::Min(26),
    Constraint::Length(20),
    Constraint::Length(14),
];

fn counter(row: &CounterRow) -> Vec<Column> {
    vec![text(&row.name), total(row.total), rate(row.rate)]
}

fn text(text: &str) -> Column {
    (text.to_owned(), Key::Text(text.to_owned()))
}

fn total(value: u64) -> Column {
    (value.to_string(), Key::Number(value as f64))
}

fn rate(value: Option<f64>) -> Column {
    known(value, |rate| rate, |rate| number(Some(rate)))
}

fn byte_rate(value: Option<f64>) -> Column {
    known(value, |rate| rate, |rate| bytes(Some(rate)))
}

/// A cell whose value may be unknown. Unknown values are sorted behind all known ones.
fn known<T: Copy>(value: Option<T>, key: impl Fn(T) -> f64, shown: impl Fn(T) -> String) -> Column {
    let sorted = value.map_or(f64::NEG_INFINITY, key);
    (value.map_or_else(|| "-".into(), shown), Key::Number(sorted))
}

/// Shows a number. One below 10 has a decimal.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value > 0.0 && value < 9.95 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

fn bytes(value: Option<f64>) -> String {
    // The conversion from float to integer saturates and does not wrap.
    value.map_or_else(
        || "-".into(),
        |value| Bytes(value.round() as u64).to_string(),
    )
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
