//! The routing of first requests: to which pool and data server each goes, and what is counted for it.

pub mod choice;
pub mod path_hash;
pub mod route;
pub mod sizes;
pub mod tally;
pub mod tls;
