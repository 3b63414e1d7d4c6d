//! From the text of `baton.toml` to the raw schema, and how mistakes are reported.

pub mod document;
pub mod field;
pub mod problem;
pub mod raw;
pub mod read;
pub mod report;
