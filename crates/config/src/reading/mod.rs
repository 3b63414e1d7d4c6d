//! From the text of `baton.toml` to the values of its keys, and how mistakes are reported.

pub mod document;
pub mod parsed;
pub mod problem;
pub mod read;
pub mod report;
pub mod schema;
pub mod value;
