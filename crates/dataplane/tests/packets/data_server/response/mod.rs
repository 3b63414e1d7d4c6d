//! Responses as they leave: how they begin and where they end.

pub mod head;
pub mod responses;
