//! Programs and maps on their way into the kernel, and what of them outlives the daemon.

pub mod attach;
pub mod everywhere;
pub mod frags;
pub mod layout;
pub mod load;
pub mod pins;
