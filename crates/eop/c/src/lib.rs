//! libeop.so: the sockets of crate `eop`, for C. `include/eop.h` says what each function does.
//!
//! This is the edge where pointers of C become references, and so the one place besides the data plane
//! with `unsafe`.

mod code;
mod ffi;
mod socket;
