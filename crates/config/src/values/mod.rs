//! Values that several sections have: each a type that holds only what it may.

pub mod address;
pub mod duration;
pub mod interfaces;
pub mod mac;
pub mod members;
pub mod name;
pub mod number;
pub mod size;
