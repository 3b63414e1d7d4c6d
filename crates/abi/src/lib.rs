//! The C side's structs and constants (`bpf/abi`) as Rust types.
//!
//! No definition here is written by hand: `build.rs` generates them from BTF, so C and Rust cannot drift.
//! Padding is always a named field, which `IntoBytes` proves at compile time.

// Arrays of more than 32 elements have no derived default, so none of the structs derives it.
#[allow(clippy::derivable_impls)]
mod generated {
    use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}

mod keys;
mod pools;
mod tcb;

pub use generated::*;
pub use keys::short_address;
