//! Values that several sections use. Each has a type that cannot hold a wrong value.

pub mod address;
pub mod duration;
pub mod interfaces;
pub mod mac;
pub mod members;
pub mod name;
pub mod number;
pub mod size;
pub mod words;
