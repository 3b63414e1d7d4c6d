//! Steps in which clients send requests.

pub mod abort;
pub mod ahead;
pub mod ask;
pub mod background;
pub mod broken_off;
pub mod client;
pub mod crowd;
pub mod get;
pub mod http;
pub mod interrupted;
pub mod load;
pub(crate) mod page;
pub mod pipeline;
pub mod post;
pub mod readers;
pub mod stalled;
pub mod sticky;
pub mod targets;
pub mod walk;
