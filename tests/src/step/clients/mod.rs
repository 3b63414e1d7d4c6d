//! Steps in which clients send requests.

pub mod abort;
pub mod ahead;
pub mod ask;
pub mod background;
pub mod broken_off;
pub mod client;
pub mod crowd;
pub mod downloads;
pub mod get;
pub mod http;
pub mod interrupted;
pub mod load;
pub mod pipeline;
pub mod post;
pub mod readers;
pub mod soak;
pub mod stalled;
pub mod sticky;
pub mod targets;
pub mod tour;
pub mod walk;
