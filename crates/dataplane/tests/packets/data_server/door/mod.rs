//! The door: each further request is judged at the data server that has the connection's socket.

pub mod body;
pub mod deserted;
pub mod dispatcher;
pub mod early;
pub mod fence;
pub mod keep_request;
pub mod merged;
pub mod owner;
pub mod owner_ends;
pub mod pools;
pub mod requests;
pub mod tally;
pub mod tls;
pub mod tls_stays;
