//! TCBS: a batch of the TCB entries that migrate to another connection server.

use baton_abi::{
    LCCP_BATCH_ABORT, LCCP_BATCH_FIRST, LCCP_BATCH_LAST, LCCP_MAX_BODY, LccpTcbs, LccpTcbsEntry,
};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::TcbEntry;

/// One batch of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcbs {
    /// The number of the migration.
    pub migration: u64,
    /// The number of the batch, from 0.
    pub batch: u32,
    /// What the batch says about its migration.
    pub flags: BatchFlags,
    entries: Vec<TcbEntry>,
}

/// What a batch says about its migration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchFlags {
    /// The migration begins with this batch.
    pub first: bool,
    /// The migration ends with this batch.
    pub last: bool,
    /// The migration was broken off before its end.
    pub abort: bool,
}

impl Tcbs {
    /// How many entries one message holds: what fits `LCCP_MAX_BODY`.
    pub const ENTRIES: usize =
        (LCCP_MAX_BODY as usize - size_of::<LccpTcbs>()) / size_of::<LccpTcbsEntry>();

    /// A batch with the first [`Tcbs::ENTRIES`] of `entries`; the others are left out.
    pub fn new(migration: u64, batch: u32, flags: BatchFlags, entries: &[TcbEntry]) -> Self {
        Self {
            migration,
            batch,
            flags,
            entries: entries[..entries.len().min(Self::ENTRIES)].to_vec(),
        }
    }

    /// The entries.
    pub fn entries(&self) -> &[TcbEntry] {
        &self.entries
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let head = LccpTcbs {
            be_migration: self.migration.to_be(),
            be_batch: self.batch.to_be(),
            be_entries: (self.entries.len() as u16).to_be(), // at most ENTRIES
            be_flags: self.flags.bits().to_be(),
        };
        let mut body = Vec::with_capacity(LCCP_MAX_BODY as usize);
        body.extend_from_slice(head.as_bytes());
        for entry in &self.entries {
            body.extend_from_slice(LccpTcbsEntry::from(entry).as_bytes());
        }
        body
    }

    /// Reads a body. Returns `None` if it is malformed. Bytes behind the last entry are ignored.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (head, rest) = LccpTcbs::read_from_prefix(body).ok()?;
        let count = usize::from(u16::from_be(head.be_entries));
        let (entries, _) = <[LccpTcbsEntry]>::ref_from_prefix_with_elems(rest, count).ok()?;
        Some(Self {
            migration: u64::from_be(head.be_migration),
            batch: u32::from_be(head.be_batch),
            flags: BatchFlags::of(u16::from_be(head.be_flags)),
            entries: entries.iter().map(TcbEntry::read).collect::<Option<_>>()?,
        })
    }
}

impl BatchFlags {
    fn bits(self) -> u16 {
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let bits = bit(self.first, LCCP_BATCH_FIRST)
            | bit(self.last, LCCP_BATCH_LAST)
            | bit(self.abort, LCCP_BATCH_ABORT);
        bits as u16 // three low bits
    }

    /// Reads the flags. Bits without a meaning are ignored.
    fn of(bits: u16) -> Self {
        let has = |bit: u32| u32::from(bits) & bit != 0;
        Self {
            first: has(LCCP_BATCH_FIRST),
            last: has(LCCP_BATCH_LAST),
            abort: has(LCCP_BATCH_ABORT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Address, Endpoint, EntryKey, ShortAddress};

    fn entry(port: u16) -> TcbEntry {
        let address = Address::from_octets([7; 16]);
        let short = ShortAddress::from_word(9).unwrap();
        TcbEntry {
            key: EntryKey {
                client: Endpoint { address, port },
                cluster: short,
                port: 80,
            },
            pool: 1,
            route: None,
            request_seq: 1,
            last_seq: 2,
            last_ack: 3,
            age: 5,
            owner: short,
            previous: None,
            mss: std::num::NonZeroU16::MIN,
            scales: None,
            sack: false,
            state: 0,
            attempt: 0,
        }
    }

    #[test]
    fn a_full_batch_fits_and_what_is_more_is_left_out() {
        let entries: Vec<_> = (0..2 * Tcbs::ENTRIES as u16).map(entry).collect();
        let batch = Tcbs::new(1, 0, BatchFlags::default(), &entries);
        assert_eq!(batch.entries(), &entries[..Tcbs::ENTRIES]);
        assert!(batch.write().len() <= LCCP_MAX_BODY as usize);
        assert_eq!(Tcbs::read(&batch.write()), Some(batch));
    }

    #[test]
    fn what_cannot_be_is_no_batch() {
        let body = Tcbs::new(1, 0, BatchFlags::default(), &[entry(1)]).write();
        assert!(Tcbs::read(&body).is_some());
        assert_eq!(Tcbs::read(&body[..body.len() - 1]), None, "cut short");
        for (what, field) in [("cluster", 16..20), ("owner", 56..60), ("mss", 64..66)] {
            let mut wrong = body.clone();
            wrong[size_of::<LccpTcbs>()..][field].fill(0);
            assert_eq!(Tcbs::read(&wrong), None, "no {what}");
        }
    }
}
