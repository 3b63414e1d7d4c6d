//! Channels: numbered messages from one node to another, and how lost ones are found and sent again.
//!
//! Messages such as ADOPT are not acknowledged. The sender numbers them and keeps the last ones; the receiver
//! notes which numbers came ([`WINDOW`] of them). A hole in the numbers is a lost message, which is asked for
//! again ([`Receiver`]). A message that is lost just before a pause leaves no hole, so the sender then tells the
//! number of its last message ([`Sender`]).
//!
//! Both ends are looked at every [`TICK`] while messages come and go, and every [`IDLE_TICK`] otherwise. So a lost
//! message costs some milliseconds, after a pause at most about 100, and not the client's retransmission timeout of at
//! least 200 ms. A message that does not come is asked for three times. After that the client's own retransmission
//! repairs the loss, as it would without channels.

mod pace;
mod receiver;
mod sender;

pub use pace::Pace;
pub use receiver::Receiver;
pub use sender::Sender;

use std::time::Duration;

/// How many of the last numbers each end remembers.
pub const WINDOW: usize = baton_abi::WINDOW as usize;

/// The time between two looks at the channels while messages come and go.
pub const TICK: Duration = Duration::from_millis(5);

/// The time between two looks at the channels when nothing has been sent or received for a while.
pub const IDLE_TICK: Duration = Duration::from_millis(50);

/// How far `b` is ahead of `a`; negative if it is behind. Numbers wrap around after 65,535.
const fn ahead(a: u16, b: u16) -> i16 {
    b.wrapping_sub(a).cast_signed()
}
