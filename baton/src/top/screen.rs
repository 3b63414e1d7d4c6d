//! What the keys have chosen: the page, its order, and how far it is scrolled.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// The pages, of which one is shown at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    #[default]
    Nodes,
    Pools,
    Counters,
}

impl Page {
    /// All pages, from left to right.
    pub const ALL: [Self; 3] = [Self::Nodes, Self::Pools, Self::Counters];

    /// The title on the page's tab.
    pub fn title(self) -> &'static str {
        match self {
            Self::Nodes => "Nodes",
            Self::Pools => "Pools and routes",
            Self::Counters => "Counters",
        }
    }

    /// The page's columns. Rows can be sorted by each of them; the first one has the names.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Nodes => &[
                "NODE", "ROLES", "STATE", "HEALTH", "CPU", "FLOWS", "REQ/S", "BYTES/S",
            ],
            Self::Pools => &[
                "POOL, ROUTE",
                "REQUESTS",
                "REQ/S",
                "BYTES/S",
                "MOVES/S",
                "503",
            ],
            Self::Counters => &["COUNTER", "TOTAL", "PER SECOND"],
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Nodes => 0,
            Self::Pools => 1,
            Self::Counters => 2,
        }
    }
}

/// The state of the screen.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    pub page: Page,
    /// For each page, the column by which it is sorted; `None` keeps the order of the node's answer.
    sorted: [Option<usize>; 3],
    pub scrolled: usize,
}

/// What a key asks the caller to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEffect {
    Quit,
    /// The screen has changed and must be drawn again.
    Redraw,
    Nothing,
}

impl Screen {
    /// The column by which the current page is sorted.
    pub fn sorted_by(&self) -> Option<usize> {
        self.sorted[self.page.index()]
    }

    /// Handles an event, and returns what the caller has to do.
    pub fn handle(&mut self, event: &Event) -> KeyEffect {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => return KeyEffect::Redraw,
            _ => return KeyEffect::Nothing,
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return KeyEffect::Quit,
            KeyCode::Char('c') if control => return KeyEffect::Quit,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Page::ALL.len() - 1),
            KeyCode::Right => self.sort(1),
            KeyCode::Left => self.sort(self.page.columns().len()),
            KeyCode::Down => self.scrolled += 1,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += 10,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            _ => return KeyEffect::Nothing,
        }
        KeyEffect::Redraw
    }

    /// Scrolls back to the last row of a page of so many rows, so that the next key upwards is seen at once.
    pub fn scroll_within(&mut self, rows: usize) {
        self.scrolled = self.scrolled.min(rows.saturating_sub(1));
    }

    fn turn(&mut self, by: usize) {
        self.page = Page::ALL[(self.page.index() + by) % Page::ALL.len()];
        self.scrolled = 0;
    }

    /// Moves the order by `by` places around all columns. The place before the first column is "not sorted".
    fn sort(&mut self, by: usize) {
        let columns = self.page.columns().len();
        let sorted = &mut self.sorted[self.page.index()];
        let place = sorted.map_or(0, |column| column + 1);
        *sorted = ((place + by) % (columns + 1)).checked_sub(1);
        self.scrolled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    fn press(screen: &mut Screen, code: KeyCode) -> KeyEffect {
        screen.handle(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn tab_goes_around() {
        let mut screen = Screen::default();
        for page in [Page::Pools, Page::Counters, Page::Nodes] {
            assert_eq!(press(&mut screen, KeyCode::Tab), KeyEffect::Redraw);
            assert_eq!(screen.page, page);
        }
        press(&mut screen, KeyCode::BackTab);
        assert_eq!(screen.page, Page::Counters);
    }

    #[test]
    fn arrows_sort_each_page_by_itself() {
        let mut screen = Screen::default();
        press(&mut screen, KeyCode::Right);
        press(&mut screen, KeyCode::Right);
        assert_eq!(screen.sorted_by(), Some(1));
        press(&mut screen, KeyCode::Tab);
        assert_eq!(screen.sorted_by(), None);
        press(&mut screen, KeyCode::Left);
        assert_eq!(screen.sorted_by(), Some(Page::Pools.columns().len() - 1));
        press(&mut screen, KeyCode::Right);
        assert_eq!(screen.sorted_by(), None);
    }

    #[test]
    fn ways_to_quit() {
        let mut screen = Screen::default();
        assert_eq!(press(&mut screen, KeyCode::Char('q')), KeyEffect::Quit);
        assert_eq!(press(&mut screen, KeyCode::Esc), KeyEffect::Quit);
        assert_eq!(press(&mut screen, KeyCode::Char('c')), KeyEffect::Nothing);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.handle(&Event::Key(control_c)), KeyEffect::Quit);
    }

    #[test]
    fn behind_the_last_row_the_next_key_upwards_counts() {
        let mut screen = Screen::default();
        for _ in 0..100 {
            press(&mut screen, KeyCode::PageDown);
        }
        screen.scroll_within(30);
        press(&mut screen, KeyCode::Up);
        assert_eq!(screen.scrolled, 28);
        screen.scroll_within(0);
        assert_eq!(screen.scrolled, 0);
    }

    #[test]
    fn scrolling_ends_at_the_top() {
        let mut screen = Screen::default();
        press(&mut screen, KeyCode::Up);
        assert_eq!(screen.scrolled, 0);
        press(&mut screen, KeyCode::PageDown);
        press(&mut screen, KeyCode::Up);
        assert_eq!(screen.scrolled, 9);
        press(&mut screen, KeyCode::Tab);
        assert_eq!(screen.scrolled, 0);
    }
}
