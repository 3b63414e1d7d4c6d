//! An I/O server and application nodes in one process, over the loopback interface, with clients that know only TCP.
//! All tests run over each network.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod loopback {
    mod breaking;
    mod bytes;
    mod cluster;
    mod many;
    mod misbehaving;
    mod ports;
    mod stranger;
}
