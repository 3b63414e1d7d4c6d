//! What the keys have chosen: a page, its order, and where it is scrolled to.

use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};

/// One at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    #[default]
    Nodes,
    Pools,
    Counters,
}

impl Page {
    /// From left to right.
    pub const ALL: [Self; 3] = [Self::Nodes, Self::Pools, Self::Counters];

    /// As its tab says.
    pub fn title(self) -> &'static str {
        match self {
            Self::Nodes => "Nodes",
            Self::Pools => "Pools and routes",
            Self::Counters => "Counters",
        }
    }

    /// Its columns, each of which rows can be sorted by. The first is that of names.
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

    fn place(self) -> usize {
        match self {
            Self::Nodes => 0,
            Self::Pools => 1,
            Self::Counters => 2,
        }
    }
}

/// What is on the screen.
#[derive(Clone, Debug, Default)]
pub struct Screen {
    pub page: Page,
    /// Of each page: the column that it is sorted by; none: as the node says it.
    sorted: [Option<usize>; 3],
    pub scrolled: usize,
}

/// What a key asks for beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Quit,
    /// The screen is another one.
    Redraw,
    Nothing,
}

impl Screen {
    /// The column that this page is sorted by.
    pub fn sorted_by(&self) -> Option<usize> {
        self.sorted[self.page.place()]
    }

    /// Does what an event asks for.
    pub fn handle(&mut self, event: &Event) -> Wish {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => key,
            Event::Resize(..) => return Wish::Redraw,
            _ => return Wish::Nothing,
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char('c') if control => return Wish::Quit,
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Page::ALL.len() - 1),
            KeyCode::Right => self.sort(1),
            KeyCode::Left => self.sort(self.page.columns().len()),
            KeyCode::Down => self.scrolled += 1,
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled += 10,
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(10),
            _ => return Wish::Nothing,
        }
        Wish::Redraw
    }

    fn turn(&mut self, by: usize) {
        self.page = Page::ALL[(self.page.place() + by) % Page::ALL.len()];
        self.scrolled = 0;
    }

    /// Around all columns and "not sorted", which is before the first.
    fn sort(&mut self, by: usize) {
        let columns = self.page.columns().len();
        let sorted = &mut self.sorted[self.page.place()];
        let place = sorted.map_or(0, |column| column + 1);
        *sorted = ((place + by) % (columns + 1)).checked_sub(1);
        self.scrolled = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::crossterm::event::KeyEvent;

    fn press(screen: &mut Screen, code: KeyCode) -> Wish {
        screen.handle(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    #[test]
    fn tab_goes_around() {
        let mut screen = Screen::default();
        for page in [Page::Pools, Page::Counters, Page::Nodes] {
            assert_eq!(press(&mut screen, KeyCode::Tab), Wish::Redraw);
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
        assert_eq!(press(&mut screen, KeyCode::Char('q')), Wish::Quit);
        assert_eq!(press(&mut screen, KeyCode::Esc), Wish::Quit);
        assert_eq!(press(&mut screen, KeyCode::Char('c')), Wish::Nothing);
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.handle(&Event::Key(control_c)), Wish::Quit);
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
