//! HTTP/1 as the agent reads it. No I/O, but for the agent's own answers.

pub(crate) mod answer;
pub(crate) mod asked;
pub(crate) mod body;
pub(crate) mod forwarded_head;
pub(crate) mod hsts;
pub(crate) mod list;
pub(crate) mod response_head;
pub(crate) mod verdict;
