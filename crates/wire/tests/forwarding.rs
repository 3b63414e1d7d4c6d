//! The forwarding protocol's golden vectors, and what holds for every frame.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod forwarding {
    mod any;
    mod properties;
    mod vectors;
}
