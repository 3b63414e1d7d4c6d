//! TAKEN: which batches of TCB entries came, and how many of their entries were taken.

use baton_abi::{
    BATCH_WINDOW, LCCP_LEFT_OUT_FULL, LCCP_LEFT_OUT_OLDER, LCCP_LEFT_OUT_OWNER,
    LCCP_LEFT_OUT_REASONS, LCCP_LEFT_OUT_SERVICE, LCCP_TAKEN_BUSY, LCCP_TAKEN_NO_CS,
    LCCP_TAKEN_NO_TABLE, LCCP_TAKEN_STRANGER, LCCP_TAKEN_UNKNOWN, LccpTaken,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

/// Acknowledges the batches of a migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The number of the migration.
    pub migration: u64,
    /// All batches below this number have come.
    pub next: u32,
    /// Which batches from `next` on have come as well, one bit for each.
    pub came: [u64; BATCH_WINDOW as usize / 64],
    /// How many entries are in the table.
    pub taken: u32,
    /// How many entries are not in the table, by [`LeftOut`].
    pub left_out: [u32; LCCP_LEFT_OUT_REASONS as usize],
    /// Why the receiver takes nothing at all; `None`: it takes entries.
    pub refusal: Option<TakenRefusal>,
}

impl Taken {
    /// Whether this batch has come.
    pub fn has(&self, batch: u32) -> bool {
        let Some(at) = batch.checked_sub(self.next) else {
            return true;
        };
        self.came
            .get(at as usize / 64)
            .is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// Notes that a batch has come. A batch beyond the window cannot be noted.
    pub fn set(&mut self, batch: u32) {
        if let Some(at) = batch.checked_sub(self.next)
            && let Some(word) = self.came.get_mut(at as usize / 64)
        {
            *word |= 1 << (at % 64);
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let taken = LccpTaken {
            be_migration: self.migration.to_be(),
            be_next: self.next.to_be(),
            be_refusal: self.refusal.map_or(0, TakenRefusal::number).to_be(),
            reserved: 0,
            be_taken: self.taken.to_be(),
            be_left_out: self.left_out.map(u32::to_be),
            reserved_word: 0,
            be_came: self.came.map(u64::to_be),
        };
        taken.as_bytes().to_vec()
    }

    /// Reads a body. Returns `None` if it is too short.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (taken, _) = LccpTaken::read_from_prefix(body).ok()?;
        Some(Self {
            migration: u64::from_be(taken.be_migration),
            next: u32::from_be(taken.be_next),
            came: taken.be_came.map(u64::from_be),
            taken: u32::from_be(taken.be_taken),
            left_out: taken.be_left_out.map(u32::from_be),
            refusal: TakenRefusal::from_number(u16::from_be(taken.be_refusal)),
        })
    }
}

/// Why a node takes no entries of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TakenRefusal {
    /// The receiver is not a connection server of the sender's addresses.
    #[error(
        "it is no connection server of these cluster addresses by its own configuration: give it the role \"cs\" there, and reload or restart it"
    )]
    NoConnectionServer,
    /// The sender is not a connection server in the receiver's configuration.
    #[error(
        "by its configuration the sender is no connection server: give both nodes the same file, and reload it"
    )]
    Stranger,
    /// The receiver is taking another node's entries.
    #[error("it is taking the entries of another node: wait for that migration's end")]
    Busy,
    /// The receiver knows no such migration.
    #[error("its daemon has restarted meanwhile: migrate once more")]
    Unknown,
    /// The receiver cannot write to its table.
    #[error("it cannot write to its TCP table: its log says why")]
    NoTable,
    /// The receiver gives a reason that only a newer version knows.
    #[error("for a reason that this version does not know: give both nodes the same version")]
    Other,
}

impl TakenRefusal {
    const KNOWN: [(Self, u32); 5] = [
        (Self::NoConnectionServer, LCCP_TAKEN_NO_CS),
        (Self::Stranger, LCCP_TAKEN_STRANGER),
        (Self::Busy, LCCP_TAKEN_BUSY),
        (Self::Unknown, LCCP_TAKEN_UNKNOWN),
        (Self::NoTable, LCCP_TAKEN_NO_TABLE),
    ];

    /// The reason's number. [`Self::Other`] has a number that no version will use.
    fn number(self) -> u16 {
        let known = Self::KNOWN.iter().find(|(refusal, _)| *refusal == self);
        known.map_or(u16::MAX, |(_, number)| *number as u16) // below ten
    }

    fn from_number(number: u16) -> Option<Self> {
        if number == 0 {
            return None;
        }
        let known = Self::KNOWN
            .iter()
            .find(|(_, known)| *known == u32::from(number));
        Some(known.map_or(Self::Other, |(refusal, _)| *refusal))
    }
}

/// Why an entry is not in the receiver's table. CLAIM finds the connection all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeftOut {
    /// The table is full.
    Full,
    /// The receiver has no such data server.
    Owner,
    /// The receiver has no such service.
    Service,
    /// The table has a newer entry of this connection.
    Older,
}

impl LeftOut {
    /// All reasons, in the order of their indices.
    pub const ALL: [Self; LCCP_LEFT_OUT_REASONS as usize] =
        [Self::Full, Self::Owner, Self::Service, Self::Older];

    /// The index of this reason in [`Taken::left_out`].
    pub const fn index(self) -> usize {
        let index = match self {
            Self::Full => LCCP_LEFT_OUT_FULL,
            Self::Owner => LCCP_LEFT_OUT_OWNER,
            Self::Service => LCCP_LEFT_OUT_SERVICE,
            Self::Older => LCCP_LEFT_OUT_OLDER,
        };
        index as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_below_the_next_or_in_the_window() {
        let mut taken = Taken {
            next: 10,
            ..Taken::default()
        };
        for batch in [12, 73, 74, 265, 266, 9] {
            taken.set(batch);
        }
        let came: Vec<u32> = (0..300).filter(|batch| taken.has(*batch)).collect();
        let expected: Vec<u32> = (0..10).chain([12, 73, 74, 265]).collect();
        assert_eq!(came, expected);
    }

    #[test]
    fn reasons_have_places_and_names() {
        for (at, reason) in LeftOut::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), at);
        }
        for (refusal, _) in TakenRefusal::KNOWN {
            assert_eq!(TakenRefusal::from_number(refusal.number()), Some(refusal));
        }
        assert_eq!(TakenRefusal::from_number(0), None);
        assert_eq!(TakenRefusal::from_number(999), Some(TakenRefusal::Other));
        assert_eq!(
            TakenRefusal::from_number(TakenRefusal::Other.number()),
            Some(TakenRefusal::Other)
        );
    }
}
