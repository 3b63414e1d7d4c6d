//! What a program sets on its socket, done at the I/O server's.

use std::time::Duration;

use super::{FrameError, Kind};

/// Socket options; what is `None` is left as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// TCP_NODELAY.
    pub nodelay: Option<bool>,
    /// SO_KEEPALIVE.
    pub keepalive: Option<bool>,
    /// SO_LINGER: `Some(None)` off, `Some(Some(time))` on; zero: closing resets. Whole seconds: a part of one
    /// is sent as a whole one.
    pub linger: Option<Option<Duration>>,
    /// SO_SNDBUF, bytes.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF, bytes.
    pub receive_buffer: Option<u32>,
}

const NODELAY: u8 = 1;
const KEEPALIVE: u8 = 2;
const LINGER: u8 = 4;
const SEND_BUFFER: u8 = 8;
const RECEIVE_BUFFER: u8 = 16;
const SWITCHES: u8 = NODELAY | KEEPALIVE | LINGER;
const ALL: u8 = SWITCHES | SEND_BUFFER | RECEIVE_BUFFER;

impl SocketOptions {
    /// `given u8 | on u8 | zero u16 | linger u32, seconds | send buffer u32 | receive buffer u32`
    pub(super) fn encode(&self) -> [u8; 16] {
        let (mut given, mut on) = (0, 0);
        let mut switch = |bit, value: Option<bool>| {
            given |= if value.is_some() { bit } else { 0 };
            on |= if value == Some(true) { bit } else { 0 };
        };
        switch(NODELAY, self.nodelay);
        switch(KEEPALIVE, self.keepalive);
        switch(LINGER, self.linger.map(|time| time.is_some()));
        let mut numbers = [seconds(self.linger.flatten().unwrap_or_default()), 0, 0];
        for (at, bit, value) in [
            (1, SEND_BUFFER, self.send_buffer),
            (2, RECEIVE_BUFFER, self.receive_buffer),
        ] {
            given |= if value.is_some() { bit } else { 0 };
            numbers[at] = value.unwrap_or_default();
        }
        let mut bytes = [0; 16];
        (bytes[0], bytes[1]) = (given, on);
        for (bytes, number) in bytes[4..].chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// What is not given must be zero, so that every value has one form.
    pub(super) fn decode(kind: Kind, bytes: [u8; 16]) -> Result<Self, FrameError> {
        let [given, on, z1, z2, numbers @ ..] = bytes;
        let number = |at: usize| {
            // Twelve bytes are three numbers.
            u32::from_be_bytes([0, 1, 2, 3].map(|byte| numbers[4 * at + byte]))
        };
        let is_zero = |bit, at| given & bit != 0 || number(at) == 0;
        let zeros = (z1, z2) == (0, 0)
            && given & !ALL == 0
            && on & !(given & SWITCHES) == 0
            && (on & LINGER != 0 || number(0) == 0)
            && is_zero(SEND_BUFFER, 1)
            && is_zero(RECEIVE_BUFFER, 2);
        if !zeros {
            return Err(FrameError::NotZero { kind });
        }
        let switch = |bit| (given & bit != 0).then_some(on & bit != 0);
        let value = |bit, at| (given & bit != 0).then(|| number(at));
        let linger = switch(LINGER);
        Ok(Self {
            nodelay: switch(NODELAY),
            keepalive: switch(KEEPALIVE),
            linger: linger.map(|on| on.then(|| Duration::from_secs(number(0).into()))),
            send_buffer: value(SEND_BUFFER, 1),
            receive_buffer: value(RECEIVE_BUFFER, 2),
        })
    }
}

fn seconds(time: Duration) -> u32 {
    let whole = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    u32::try_from(whole).unwrap_or(u32::MAX)
}
