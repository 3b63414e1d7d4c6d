//! Metrics of migration: entries that went to other connection servers, and entries that came from them.

use std::sync::atomic::AtomicU64;

use prometheus_client::{metrics::gauge::Gauge, registry::Registry};

use super::counter;
use crate::status::Status;

pub fn register(registry: &mut Registry, status: &Status) {
    let Some(migration) = &status.migration else {
        return;
    };
    for (name, help, value) in [
        ("begun", "Migrations that began here", migration.begun),
        ("failed", "Migrations that failed", migration.failed),
        ("passes", "Passes over the TCP table", migration.passes),
        (
            "entries_sent",
            "TCB entries that another connection server has taken",
            migration.entries_sent,
        ),
        (
            "entries_refused",
            "TCB entries that another connection server has left out",
            migration.entries_refused,
        ),
        (
            "batches_resent",
            "Batches of TCB entries that were sent again",
            migration.batches_resent,
        ),
        (
            "entries_taken",
            "TCB entries taken from another connection server",
            migration.entries_taken,
        ),
        (
            "entries_left_out",
            "TCB entries of another connection server that were left out",
            migration.entries_left_out,
        ),
    ] {
        counter(registry, &format!("migration_{name}"), help, value);
    }
    if let Some(ms) = migration.last_ms {
        let last = Gauge::<f64, AtomicU64>::default();
        last.set(ms / 1000.0);
        registry.register(
            "migration_last_seconds",
            "How long the last migration from here took",
            last,
        );
    }
}
