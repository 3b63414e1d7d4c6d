//! Where a route leads, as the table of routes says it.

use baton_abi::{ROUTE_NUMBER_SHIFT, ROUTE_RESUME};

/// Where a request is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// Index of the pool.
    pub pool: u16,
    /// Number of the route that leads there.
    pub route: u16,
    /// Whether the response may go on from another data server.
    pub resumes: bool,
}

impl Lead {
    /// The upper 16 bits of an entry in the table of routes, above the pool: the route's number and its flag.
    pub fn upper_half(self) -> u16 {
        let flags = if self.resumes { ROUTE_RESUME } else { 0 };
        // The flag is in the upper 16 bits.
        self.route | (flags >> ROUTE_NUMBER_SHIFT) as u16
    }
}
