//! Structs of counters, each of which has its field's name behind a prefix as its metric's label.

use std::sync::atomic::{AtomicU64, Ordering};

/// Defines a struct of counters that tasks share, and `all`, which reads them with their metrics' labels.
#[macro_export]
macro_rules! shared_counters {
    ($(#[$about:meta])* pub struct $name:ident($prefix:literal) { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        pub struct $name {
            $($(#[$doc])* pub $field: std::sync::atomic::AtomicU64,)*
        }

        impl $name {
            /// All counters, with their metrics' labels.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                let read = |counter: &std::sync::atomic::AtomicU64| {
                    counter.load(std::sync::atomic::Ordering::Relaxed)
                };
                vec![$((concat!($prefix, stringify!($field)), read(&self.$field)),)*]
            }
        }
    };
}

/// Defines a struct of counters that can be added to others, and `all`, which gives them with their metrics' labels.
#[macro_export]
macro_rules! counters {
    ($(#[$about:meta])* pub struct $name:ident($prefix:literal) { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Adds other counters to these.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }

            /// All counters, with their metrics' labels.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((concat!($prefix, stringify!($field)), self.$field),)*]
            }
        }
    };
}

/// Counts one event.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
