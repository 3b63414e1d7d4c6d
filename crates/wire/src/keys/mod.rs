//! Keys, and the tags that are made with them.

pub mod hash_key;
pub mod key;
pub mod pair;
pub mod tag;
