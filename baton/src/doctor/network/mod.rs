//! Checks of interfaces, addresses and routes.

pub mod address;
pub mod duplicates;
pub mod interface;
pub mod nat;
pub mod neighbors;
pub mod offloads;
pub mod response_route;
pub mod rp_filter;
pub mod virtio;
pub mod vlans;
pub mod xdp;
