//! Channels: numbered messages from one node to another, and what was lost on the way.
//!
//! ADOPT is not acknowledged. The sender numbers them and keeps the last ones; the
//! receiver notes which numbers came ([`WINDOW`] of them). A hole in the numbers is a lost message, and
//! is asked for again ([`Receiver`]). After the last message before a pause no hole can show: the
//! sender says its number once more ([`Sender`]).
//!
//! Both are looked at every [`TICK`], so that a lost message costs a few milliseconds and not the
//! client's retransmission timeout, which is 200 at least. What does not come is asked for three times;
//! after that the client repairs it, as it does without all this.

mod pace;
mod receiver;
mod sender;

pub use pace::Pace;
pub use receiver::Receiver;
pub use sender::Sender;

use std::time::Duration;

/// Numbers that both ends remember.
pub const WINDOW: usize = baton_abi::WINDOW as usize;

/// Between two looks at the channels,
pub const TICK: Duration = Duration::from_millis(5);

/// and between two when nothing has been sent or received for a while.
pub const IDLE_TICK: Duration = Duration::from_millis(50);

/// How far `b` is ahead of `a`; negative: behind. Numbers begin anew after 65,535.
const fn ahead(a: u16, b: u16) -> i16 {
    b.wrapping_sub(a).cast_signed()
}
