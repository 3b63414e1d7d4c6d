//! Packets of connections that the table does not know, or not where they are now.

pub mod claim;
pub mod claim_budget;
pub mod migrated;
pub mod moved_on;
pub mod moving;
pub mod none;
pub mod reuse;
pub mod stray;
