//! The data server's maps.

pub mod answers;
pub mod door_tally;
pub mod early;
pub mod heads;
pub mod own_pools;
pub mod reading;
pub mod relay_answer;
pub mod responses;
