//! Packets of connections that have no entry in the table, or whose entry names a data server that no longer has
//! them.

pub mod claim;
pub mod claim_budget;
pub mod migrated;
pub mod moved_on;
pub mod moving;
pub mod none;
pub mod reuse;
pub mod stray;
