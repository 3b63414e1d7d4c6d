//! The schema of `baton.toml`: every key and its TOML type. The modules of the sections check the values.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::reading::field::{Field, List, Table};
use crate::values::interfaces::Names;

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RawConfig {
    pub(crate) cluster: Option<Spanned<RawCluster>>,
    #[serde(default)]
    pub(crate) local: RawLocal,
    #[serde(default)]
    pub(crate) cs: RawCs,
    pub(crate) failover: Option<Spanned<RawFailover>>,
    pub(crate) forwarding: Option<Spanned<RawForwarding>>,
    #[serde(default)]
    pub(crate) node: Vec<Spanned<RawNode>>,
    #[serde(default)]
    pub(crate) service: Vec<Spanned<RawService>>,
}

/// `[cluster]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, written as [cluster]")]
pub(crate) struct RawCluster {
    pub(crate) key: Field<String>,
    pub(crate) key_file: Field<String>,
    pub(crate) previous_key: Field<String>,
    pub(crate) previous_key_file: Field<String>,
    pub(crate) hash_key: Field<String>,
    pub(crate) hash_key_file: Field<String>,
    pub(crate) protocol: Field<i64>,
    pub(crate) stream_port: Field<i64>,
    pub(crate) clock_window: Field<String>,
    pub(crate) window_scale: Field<i64>,
    pub(crate) hello: Field<String>,
    pub(crate) silence: Field<String>,
}

/// `[local]`
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, expecting = "a table, written as [local]")]
pub(crate) struct RawLocal {
    pub(crate) name: Field<String>,
    pub(crate) bpf_dir: Field<String>,
    pub(crate) run_dir: Field<String>,
    pub(crate) metrics: Field<String>,
    pub(crate) watch: Field<bool>,
}

/// `[cs]`
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, expecting = "a table, written as [cs]")]
pub(crate) struct RawCs {
    pub(crate) flows: Field<i64>,
    pub(crate) idle: Field<String>,
    pub(crate) closing: Field<String>,
    pub(crate) stray_grace: Field<String>,
    pub(crate) dead_after: Field<String>,
    pub(crate) kept_requests: Field<i64>,
    pub(crate) dispatcher_patience: Field<String>,
    pub(crate) release_after: Field<String>,
}

/// `[failover]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, written as [failover]")]
pub(crate) struct RawFailover {
    pub(crate) candidates: List,
    pub(crate) detection: Field<String>,
    pub(crate) preempt: Field<bool>,
    pub(crate) address: Field<String>,
}

/// `[forwarding]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, written as [forwarding]")]
pub(crate) struct RawForwarding {
    pub(crate) network: Field<String>,
    pub(crate) port: Field<i64>,
    pub(crate) addresses: List,
    pub(crate) buffer: Field<String>,
    pub(crate) policy: Field<String>,
}

/// `[[node]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, written as [[node]]")]
pub(crate) struct RawNode {
    pub(crate) name: Field<String>,
    pub(crate) address: Field<String>,
    pub(crate) interface: Field<Names>,
    pub(crate) xdp: Field<String>,
    pub(crate) also_mac: List,
    pub(crate) roles: List,
    pub(crate) weight: Field<i64>,
    pub(crate) own_keys: Field<bool>,
}

/// `[[service]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, written as [[service]]")]
pub(crate) struct RawService {
    pub(crate) name: Field<String>,
    pub(crate) address: Field<String>,
    pub(crate) port: Field<i64>,
    pub(crate) policy: Field<String>,
    pub(crate) dispatcher: Field<String>,
    pub(crate) nodes: List,
    pub(crate) weights: Field<BTreeMap<String, i64>>,
    pub(crate) relay_to: Field<BTreeMap<String, String>>,
    pub(crate) overflow: Field<RawOverflow>,
    pub(crate) connection_servers: List,
    pub(crate) protocol: Field<String>,
    pub(crate) unknown_name: Field<String>,
    pub(crate) split: Field<String>,
    pub(crate) handover: Field<String>,
    pub(crate) head_timeout: Field<String>,
    pub(crate) resume: Field<bool>,
    pub(crate) direct: Field<bool>,
    pub(crate) large: Field<RawLarge>,
    pub(crate) health: Option<Spanned<RawHealth>>,
    #[serde(default)]
    pub(crate) pool: Vec<Spanned<RawPool>>,
    #[serde(default)]
    pub(crate) route: Vec<Spanned<RawRoute>>,
}

/// `[[service.pool]]`
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, written as [[service.pool]]"
)]
pub(crate) struct RawPool {
    pub(crate) name: Field<String>,
    pub(crate) nodes: List,
    pub(crate) weights: Field<BTreeMap<String, i64>>,
    pub(crate) policy: Field<String>,
    pub(crate) overflow: Field<RawOverflow>,
}

/// `overflow`
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, written as { home = \"…\", connections = 1000 }"
)]
pub(crate) struct RawOverflow {
    pub(crate) home: Field<String>,
    pub(crate) cpu: Field<f64>,
    pub(crate) connections: Field<i64>,
}

/// `[service.large]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, written as [service.large]")]
pub(crate) struct RawLarge {
    pub(crate) pool: Field<String>,
    pub(crate) larger_than: Field<String>,
    pub(crate) root: Field<String>,
}

/// `[[service.route]]`
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, written as [[service.route]]"
)]
pub(crate) struct RawRoute {
    pub(crate) host: Field<String>,
    pub(crate) path: Field<String>,
    pub(crate) regex: Field<String>,
    pub(crate) method: Field<String>,
    pub(crate) header: Table,
    pub(crate) cookie: Table,
    pub(crate) query: Table,
    pub(crate) alpn: Field<String>,
    pub(crate) pool: Field<String>,
    pub(crate) resume: Field<bool>,
}

/// `[service.health]`
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, written as [service.health]"
)]
pub(crate) struct RawHealth {
    pub(crate) kind: Field<String>,
    pub(crate) path: Field<String>,
    pub(crate) interval: Field<String>,
    pub(crate) timeout: Field<String>,
    pub(crate) rise: Field<i64>,
    pub(crate) fall: Field<i64>,
}
