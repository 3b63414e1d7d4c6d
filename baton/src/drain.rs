//! How far a drain is, for people: a bar on a terminal, lines elsewhere.

use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressStyle};

use crate::status::{Leaving, Peer};

/// Connections that have left, of all that there were.
pub struct Bar {
    bar: Option<ProgressBar>,
    most: u64,
    said: Option<Instant>,
}

/// Between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

impl Bar {
    /// For so many connections, to begin with: those of which the node has not said so yet come on top.
    pub fn new(open: u64) -> Self {
        let bar = Term::stderr().is_term().then(|| {
            let bar = ProgressBar::new(open);
            if let Ok(style) = ProgressStyle::with_template(
                "{spinner:.green} [{bar:20.green}] {pos}/{len} {msg} {elapsed:.dim}",
            ) {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        Self {
            bar,
            most: open,
            said: None,
        }
    }

    /// So many are left.
    pub fn show(&mut self, node: &str, open: u64, leaving: Option<Leaving>) {
        self.most = self.most.max(open);
        let rest = leaving.map_or(String::new(), |leaving| format!(": {}", kinds(leaving)));
        match &self.bar {
            Some(bar) => {
                bar.set_length(self.most);
                bar.set_position(self.most - open);
                bar.set_message(format!("have left {node}{rest}"));
            }
            None if self.said.is_none_or(|said| said.elapsed() >= LINE) => {
                eprintln!("{node}: {open} connections open{rest}");
                self.said = Some(Instant::now());
            }
            None => {}
        }
    }

    /// The most there were at once.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// The terminal is as if it had not been there.
    pub fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What a node that drains still has: its own word by service, and what a connection server knows of them.
pub fn left(peer: &Peer, leaving: Option<Leaving>) -> String {
    let open = peer.connections.iter().filter(|(_, open)| **open > 0);
    let mut parts: Vec<String> = open
        .map(|(service, open)| format!("{service} {open} connections open"))
        .collect();
    if parts.is_empty() {
        parts.push("its last connections have just gone".into());
    }
    if let Some(leaving) = leaving {
        parts.push(format!("by this connection server {}", kinds(leaving)));
    }
    parts.join(", ")
}

fn kinds(leaving: Leaving) -> String {
    let Leaving { idle, pinned, busy } = leaving;
    format!("{busy} in use, {pinned} that cannot move, {idle} idle")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::example;

    #[test]
    fn what_is_left_is_said_by_service_and_kind() {
        let mut ds1 = example().nodes.remove(1);
        ds1.connections = [("api".into(), 0), ("web".into(), 12)].into();
        let leaving = Leaving {
            idle: 7,
            pinned: 3,
            busy: 2,
        };
        assert_eq!(
            left(&ds1, Some(leaving)),
            "web 12 connections open, by this connection server 2 in use, 3 that cannot move, 7 idle"
        );
        ds1.connections.clear();
        assert_eq!(left(&ds1, None), "its last connections have just gone");
    }
}
