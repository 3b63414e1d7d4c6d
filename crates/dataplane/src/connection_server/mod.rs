//! The connection server's maps.

pub mod again;
pub mod entries;
pub mod hold;
pub mod lead;
pub mod moves;
pub mod orphans;
pub mod tally;
