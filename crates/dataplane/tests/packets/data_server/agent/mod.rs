//! Connections that the agent reads, what it keeps for others, and the relay.

pub mod kept;
pub mod reader;
pub mod relay_answer;
