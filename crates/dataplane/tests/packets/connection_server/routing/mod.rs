//! To which pool and which data server a first request goes, and what is counted of it.

pub mod choice;
pub mod path_hash;
pub mod route;
pub mod sizes;
pub mod tally;
