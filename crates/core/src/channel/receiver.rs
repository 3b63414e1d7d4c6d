//! The receiving end.

use super::{WINDOW, ahead};

/// What came of one channel.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// All numbers up to this one came or were asked for. None: nothing has come yet.
    checked: Option<u16>,
    /// The highest number at the last look. What is below and has not come by the next look is lost:
    /// packets overtake each other, but not for that long.
    settled: u16,
    asked: Vec<Asked>,
}

/// What was asked for and has not come yet.
#[derive(Clone, Debug)]
struct Asked {
    number: u16,
    /// How many looks ago it was asked for first.
    looks: u8,
}

/// Looks between two times that the same number is asked for: longer than an answer takes.
const PATIENCE: u8 = 3;

/// How often a number is asked for, at most.
const TIMES: u8 = 3;

impl Receiver {
    /// Whether a look would find nothing as long as nothing comes.
    pub fn rests(&self) -> bool {
        self.asked.is_empty() && self.checked.is_none_or(|checked| checked == self.settled)
    }

    /// A look at the numbers that came last, each at its number modulo [`WINDOW`]. Returns those that
    /// are to be asked for (AGAIN).
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

    /// The sender says that `last` was its last number.
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
            // An old SYNC, or one that says nothing new.
            NEAR_BEFORE..=0 => Vec::new(),
            _ => {
                self.restart(last);
                Vec::new()
            }
        }
    }

    /// What did not come between what was checked and `end`, which is checked then.
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

    /// What was asked for before and still has not come: the question or the answer may be lost as well.
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

    /// The first look at a channel in use: what was before is not known.
    fn begin(&mut self, came: &[u16; WINDOW]) {
        if let Some(newest) = newest(came) {
            self.restart(newest);
        }
    }

    /// Nothing near has come. Has something else, in the place of what was checked?
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

/// A number farther away than this is from before the sender began anew.
const NEAR: i16 = 4 * WINDOW_LENGTH;
const NEAR_BEFORE: i16 = -NEAR;

/// `in_place` is what came last at its place. A later number hides whether it came; number 0 is that of
/// messages without a number.
const fn is_lost(number: u16, in_place: u16) -> bool {
    number != 0 && (in_place == 0 || ahead(number, in_place) < 0)
}

const fn place(number: u16) -> usize {
    number as usize % WINDOW
}

/// A number with none of the others shortly ahead of it.
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
