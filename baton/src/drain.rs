//! How far a drain is, for people: a bar on a terminal, lines elsewhere.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use crate::bar::progress_bar;
use baton_node::status::Peer;

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
        Self {
            bar: progress_bar(open),
            most: open,
            said: None,
        }
    }

    /// So many are left.
    pub fn show(&mut self, node: &str, open: u64) {
        self.most = self.most.max(open);
        match &self.bar {
            Some(bar) => {
                bar.set_length(self.most);
                bar.set_position(self.most - open);
                bar.set_message(format!("have left {node}"));
            }
            None if self.said.is_none_or(|said| said.elapsed() >= LINE) => {
                eprintln!("{node}: {open} connections open");
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

/// What a node that drains still has, by service.
pub fn left(peer: &Peer) -> String {
    let open = peer.connections.iter().filter(|(_, open)| **open > 0);
    let parts: Vec<String> = open
        .map(|(service, open)| format!("{service} {open} connections open"))
        .collect();
    if parts.is_empty() {
        return "its last connections have just gone".into();
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_node::status::example;

    #[test]
    fn what_is_left_is_said_by_service() {
        let mut ds1 = example().nodes.remove(1);
        ds1.connections = [("api".into(), 0), ("web".into(), 12)].into();
        assert_eq!(left(&ds1), "web 12 connections open");
        ds1.connections.clear();
        assert_eq!(left(&ds1), "its last connections have just gone");
    }
}
