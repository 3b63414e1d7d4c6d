//! Brings programs and maps into the kernel, and pins what must outlive the daemon.

pub mod attach;
pub mod everywhere;
pub mod frags;
pub mod layout;
pub mod load;
pub mod pins;
pub mod standalone;
