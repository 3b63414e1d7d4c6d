//! The forwarding protocol's golden vectors, and properties of every frame.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod wire {
    mod any;
    mod properties;
    mod vectors;
}
