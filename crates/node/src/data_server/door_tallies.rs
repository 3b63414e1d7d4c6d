//! What doors count for services whose owners route. Each data server tells connection servers all that its own doors
//! have counted, and `baton status` on a connection server shows the sum.
//!
//! ```text
//!  the program's map --once a second--> Tallies --a stream, on change--> ReportedTallies of each connection server --> status, metrics
//! ```
//!
//! Each text contains all counts since the map was made, and the map lives longer than the daemon. So nothing is lost
//! if a text is not heard, and nothing is counted twice if one is heard again.

mod tell;

use baton_core::tallies::ReportedTallies;
use baton_wire::Counts;

/// What this node reported last, and what other data servers have reported to it.
#[derive(Default)]
pub struct DoorTallies {
    /// The sum over all doors of this node, as it was told last.
    last: Counts,
    pub(crate) reported: ReportedTallies,
}
