//! Connections that leave a data server or are no longer there.

pub mod claim;
pub mod leave;
mod moves;
pub mod none;
pub mod yields;
