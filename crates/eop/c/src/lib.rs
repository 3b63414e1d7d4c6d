//! libeop.so: the sockets of crate `eop`, for C. `include/eop.h` says what each function does.
//!
//! Pointers of C become references here, so this is the only code with `unsafe` besides the data plane.

mod code;
mod ffi;
mod socket;
