//! What an operator asks of a node: the control socket, the report of its status, and drain.

pub mod account;
pub mod control;
pub mod drain;
pub mod report;
