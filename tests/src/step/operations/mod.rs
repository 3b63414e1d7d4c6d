//! Steps that act as an operator, or break something.

pub mod config;
pub mod drain;
pub mod fault;
pub mod migrate;
pub mod node;
pub mod process;
pub mod refuses;
pub mod repeat;
pub mod service_manager;
pub mod shell;
pub mod started_node;
pub mod systemd;
pub mod upgrade;
