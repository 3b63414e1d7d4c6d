//! Connections whose data server has died.

pub mod orphan;
pub mod owned_orphan;
