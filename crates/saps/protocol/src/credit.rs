//! How much may be sent: the algorithm of appendix A of Matsuba and Ishikawa (2007), for one direction of one connection.
//! Octets are counted from the connection's beginning.

/// The sender's part of the flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// A_s: octets that have already been sent.
    a_s: u64,
    /// L_s: how many octets may be sent in all.
    l_s: u64,
}

impl Sender {
    /// A sender that has been told the first L_r.
    pub const fn new(l_r: u64) -> Self {
        Self { a_s: 0, l_s: l_r }
    }

    /// How many octets may be sent at this moment: more than 0 while A_s < L_s.
    pub const fn room(&self) -> u64 {
        self.l_s - self.a_s
    }

    /// Counts octets as sent, at most [`Sender::room`].
    pub const fn send(&mut self, octets: u64) {
        debug_assert!(octets <= self.room());
        self.a_s += octets;
    }

    /// Takes an L_r that has arrived. Returns `false` if it is less than before, which no receiver may say; the limit
    /// then stays.
    pub const fn handle_limit(&mut self, l_r: u64) -> bool {
        let grows = l_r >= self.l_s;
        if grows {
            self.l_s = l_r;
        }
        grows
    }
}

/// The receiver's part of the flow control. L_r never exceeds A_r + E_r, so the buffer has room for all that the sender
/// may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// A_r: octets that have already been received.
    a_r: u64,
    /// B_r: size of the receive buffer.
    b_r: u64,
    /// E_r: current free space of the receive buffer.
    e_r: u64,
    /// L_r: the upper limit that has been reported to the sender.
    l_r: u64,
}

impl Receiver {
    /// A receiver whose buffer has this size, at least 1, and is empty. L_r begins as B_r.
    pub const fn new(b_r: u64) -> Self {
        let b_r = if b_r == 0 { 1 } else { b_r };
        Self {
            a_r: 0,
            b_r,
            e_r: b_r,
            l_r: b_r,
        }
    }

    /// L_r, which must be reported when the connection begins.
    pub const fn limit(&self) -> u64 {
        self.l_r
    }

    /// The number of octets in the buffer.
    pub const fn buffered(&self) -> u64 {
        self.b_r - self.e_r
    }

    /// Counts octets that have arrived.
    ///
    /// # Errors
    /// By how many octets the message exceeds L_r; then none of it is counted.
    pub const fn handle_message(&mut self, octets: u64) -> Result<(), u64> {
        let a_r = self.a_r + octets;
        if a_r > self.l_r {
            return Err(a_r - self.l_r);
        }
        self.a_r = a_r;
        self.e_r -= octets;
        Ok(())
    }

    /// Counts octets as taken out of the buffer, at most [`Receiver::buffered`]. Returns L_r if it must be reported:
    /// when the sender gains more than half a buffer by it.
    pub const fn take(&mut self, octets: u64) -> Option<u64> {
        debug_assert!(octets <= self.buffered());
        self.e_r += octets;
        if self.a_r + self.e_r > self.l_r + self.b_r / 2 {
            self.l_r = self.a_r + self.e_r;
            return Some(self.l_r);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_reported_once_it_grows_by_more_than_half_a_buffer() {
        let mut receiver = Receiver::new(100);
        let mut sender = Sender::new(receiver.limit());
        assert_eq!(sender.room(), 100);
        sender.send(100);
        assert_eq!(receiver.handle_message(100), Ok(()));
        assert_eq!(receiver.take(50), None);
        assert_eq!(receiver.take(1), Some(151));
        assert!(sender.handle_limit(151));
        assert_eq!((sender.room(), receiver.buffered()), (51, 49));
    }

    #[test]
    fn what_is_beyond_the_limit_is_not_taken() {
        let mut receiver = Receiver::new(100);
        assert_eq!(receiver.handle_message(60), Ok(()));
        assert_eq!(receiver.handle_message(43), Err(3));
        assert_eq!(receiver.handle_message(40), Ok(()));
        assert_eq!(receiver.buffered(), 100);
    }

    #[test]
    fn a_limit_does_not_shrink() {
        let mut sender = Sender::new(100);
        assert!(!sender.handle_limit(99));
        assert_eq!(sender.room(), 100);
    }

    #[test]
    fn the_smallest_buffer_does_not_get_stuck() {
        let mut receiver = Receiver::new(1);
        let mut sender = Sender::new(receiver.limit());
        for _ in 0..10 {
            sender.send(1);
            assert_eq!(receiver.handle_message(1), Ok(()));
            let limit = receiver.take(1).unwrap();
            assert!(sender.handle_limit(limit));
        }
    }
}
