//! What most tables use: the cluster, its nodes and hosts, packets, messages, and what comes out.

pub use crate::{
    blank::map_named, cluster::*, data_server::adopt::loopback::*, host::*, lccp::*, node::*,
    read::*, segment::*, sniff::*,
};
