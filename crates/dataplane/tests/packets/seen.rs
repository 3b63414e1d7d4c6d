//! What came of one packet, compared with what was expected.

use std::{collections::BTreeMap, fmt};

use crate::read::Packet;

/// What a program decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Aborted,
    Drop,
    Pass,
    Tx,
    Redirect,
}
pub use Verdict::{Aborted, Drop, Pass, Redirect, Tx};

/// Counters that moved, and by how much.
pub type Counted<'a> = &'a [(&'a str, u64)];

/// What came of one packet.
pub struct Seen {
    pub verdict: Verdict,
    pub input: Vec<u8>,
    pub frame: Vec<u8>,
    pub counted: BTreeMap<String, u64>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex =
            |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
        writeln!(f, "{:?}, counted {:?}", self.verdict, self.counted)?;
        writeln!(f, "  in  {}", hex(&self.input))?;
        write!(f, "  out {}", hex(&self.frame))
    }
}

impl Seen {
    /// Panics unless the verdict is this one, and exactly these counters have moved.
    #[track_caller]
    pub fn expect(self, verdict: Verdict, counted: Counted<'_>) -> Self {
        self.check(verdict, counted)
            .unwrap_or_else(|error| panic!("{error}\n{self:?}"));
        self
    }

    /// Does what [`Seen::expect`] does, and names the case if it panics.
    #[track_caller]
    pub fn expect_of(&self, name: impl fmt::Display, verdict: Verdict, counted: Counted<'_>) {
        self.check(verdict, counted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    pub fn check(&self, verdict: Verdict, counted: Counted<'_>) -> Result<(), String> {
        let expected: BTreeMap<String, u64> = counted
            .iter()
            .map(|(name, by)| ((*name).to_owned(), *by))
            .collect();
        if (self.verdict, &self.counted) != (verdict, &expected) {
            return Err(format!(
                "expected {verdict:?} {expected:?}, saw {:?} {:?}",
                self.verdict, self.counted
            ));
        }
        Ok(())
    }

    /// Panics unless the frame is as it came.
    #[track_caller]
    pub fn untouched(self) -> Self {
        assert_eq!(self.frame, self.input);
        self
    }

    #[track_caller]
    pub fn packet(&self) -> Packet {
        Packet::read(&self.frame).unwrap_or_else(|error| panic!("{error}\n{self:?}"))
    }
}
