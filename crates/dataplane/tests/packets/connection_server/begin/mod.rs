//! How a connection begins at the connection server: from the SYN to the ADOPT that carries the first request.

pub mod aware;
pub mod bad_syn;
pub mod cookie;
pub mod first_request;
pub mod hold;
pub mod layouts;
pub mod predecessor;
pub mod probe;
pub mod refused;
pub mod replayed;
pub mod syn;
