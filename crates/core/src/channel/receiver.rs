//! The receiving end of a channel.

use super::{WINDOW, ahead};

/// Which numbers of one channel came, and which were asked for.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// All numbers up to this one came or were asked for; `None` if nothing has come yet.
    checked: Option<u16>,
    /// The highest number at the last look. A lower number that has not come by the next look is lost: packets
    /// overtake each other, but not by that long.
    settled: u16,
    asked: Vec<Asked>,
}

/// A number that was asked for and has not come yet.
#[derive(Clone, Debug)]
struct Asked {
    number: u16,
    /// How many looks ago the number was first asked for.
    looks: u8,
}

/// How many looks pass before the same number is asked for again: longer than an answer takes.
const PATIENCE: u8 = 3;

/// How often a number is asked for, at most.
const TIMES: u8 = 3;

impl Receiver {
    /// Whether looks find nothing until another number comes.
    pub fn rests(&self) -> bool {
        self.asked.is_empty() && self.checked.is_none_or(|checked| checked == self.settled)
    }

    /// Looks at the numbers that came last, each stored at its number modulo [`WINDOW`]. Returns the numbers
    /// that are to be asked for (RESEND).
    pub fn look(&mut self, came: &[u16; WINDOW]) -> Vec<u16> {
        let Some(checked) = self.checked else {
            self.begin(came);
            return Vec::new();
        };
        let highest = came
            .iter()
            .filter(|number| **number != 0)
            .map(|number| ahead(checked, *number))
            .filter(|by| (1..=NEAR).contains(by))
            .max();
        let mut lost = self.ask_again(came);
        lost.extend(self.holes(came, self.settled));
        match highest {
            Some(by) => self.settled = checked.wrapping_add_signed(by),
            None => self.follow_jump(came, checked),
        }
        lost
    }

    /// The sender says that `last` was its last number. Returns the numbers that are to be asked for.
    pub fn sync(&mut self, came: &[u16; WINDOW], last: u16) -> Vec<u16> {
        let Some(checked) = self.checked else {
            self.begin(came);
            return Vec::new();
        };
        match ahead(checked, last) {
            1..=NEAR => {
                if ahead(self.settled, last) > 0 {
                    self.settled = last;
                }
                self.holes(came, last)
            }
            // The SYNC is old, or says nothing new.
            NEAR_BEFORE..=0 => Vec::new(),
            _ => {
                self.restart(last);
                Vec::new()
            }
        }
    }

    /// The numbers after the last checked one, up to `end`, that did not come. Afterwards all up to `end` are
    /// checked.
    fn holes(&mut self, came: &[u16; WINDOW], end: u16) -> Vec<u16> {
        let Some(checked) = self.checked else {
            return Vec::new();
        };
        let by = ahead(checked, end);
        if by <= 0 {
            return Vec::new();
        }
        self.checked = Some(end);
        let lost: Vec<u16> = (0..by.min(WINDOW_LENGTH))
            .rev()
            .map(|before| end.wrapping_sub(before.cast_unsigned()))
            .filter(|number| is_lost(*number, came[place(*number)]))
            .collect();
        let asked = lost.iter().map(|number| Asked {
            number: *number,
            looks: 0,
        });
        self.asked.extend(asked);
        lost
    }

    /// The numbers that were asked for before and are due to be asked for again: the question or the answer may
    /// be lost as well.
    fn ask_again(&mut self, came: &[u16; WINDOW]) -> Vec<u16> {
        self.asked.retain_mut(|asked| {
            asked.looks += 1;
            asked.looks < PATIENCE * TIMES && is_lost(asked.number, came[place(asked.number)])
        });
        (self.asked.iter())
            .filter(|asked| asked.looks.is_multiple_of(PATIENCE))
            .map(|asked| asked.number)
            .collect()
    }

    /// The first look at a channel that is already in use. What came before is not known.
    fn begin(&mut self, came: &[u16; WINDOW]) {
        if let Some(newest) = newest(came) {
            self.restart(newest);
        }
    }

    /// No number near the checked one has come. If another number has replaced it and the newest is far away,
    /// the sender began anew, and so does this.
    fn follow_jump(&mut self, came: &[u16; WINDOW], checked: u16) {
        if came[place(checked)] != checked
            && let Some(newest) = newest(came)
            && ahead(checked, newest).unsigned_abs() > NEAR.unsigned_abs()
        {
            self.restart(newest);
        }
    }

    fn restart(&mut self, at: u16) {
        self.checked = Some(at);
        self.settled = at;
        self.asked.clear();
    }
}

const WINDOW_LENGTH: i16 = WINDOW as i16;

/// If a number is farther away than this, the sender has begun anew in between.
const NEAR: i16 = 4 * WINDOW_LENGTH;
const NEAR_BEFORE: i16 = -NEAR;

/// Whether a number did not come. `in_place` is the number that came last at its place in the window; a later
/// one there hides whether this one came. Number 0 stands for messages without a number.
const fn is_lost(number: u16, in_place: u16) -> bool {
    number != 0 && (in_place == 0 || ahead(number, in_place) < 0)
}

const fn place(number: u16) -> usize {
    number as usize % WINDOW
}

/// A number that has no other one shortly ahead of it.
fn newest(came: &[u16; WINDOW]) -> Option<u16> {
    let mut numbers = came.iter().copied().filter(|number| *number != 0);
    let first = numbers.next()?;
    Some(numbers.fold(first, |newest, number| {
        if (1..=WINDOW_LENGTH).contains(&ahead(newest, number)) {
            number
        } else {
            newest
        }
    }))
}
