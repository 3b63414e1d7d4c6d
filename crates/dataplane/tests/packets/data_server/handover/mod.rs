//! Connections that leave a data server, or are not there any more.

pub mod claim;
pub mod leave;
pub mod none;
pub mod yields;
