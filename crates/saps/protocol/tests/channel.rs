//! Two ends of a channel, in virtual time and in every order that events can come in.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod channel {
    mod faults;
    mod properties;
    mod world;
}
