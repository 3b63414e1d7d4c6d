//! The options that a program sets on its socket, and that the I/O server sets on the client's socket.

/// Socket options. An option that is `None` stays as it is. SO_LINGER is not among them: its effect on a client's
/// connection is sent as a Reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// TCP_NODELAY: whether small messages are sent at once.
    pub nodelay: Option<bool>,
    /// SO_KEEPALIVE: whether keepalive probes are sent.
    pub keepalive: Option<bool>,
    /// TCP_KEEPIDLE in seconds.
    pub keep_idle: Option<u32>,
    /// TCP_KEEPINTVL in seconds.
    pub keep_interval: Option<u32>,
    /// TCP_KEEPCNT: the number of probes without an answer that ends the connection.
    pub keep_probes: Option<u32>,
    /// TCP_USER_TIMEOUT in milliseconds.
    pub user_timeout: Option<u32>,
    /// SO_SNDBUF in bytes.
    pub send_buffer: Option<u32>,
    /// SO_RCVBUF in bytes.
    pub receive_buffer: Option<u32>,
}

/// The length of encoded options in bytes.
pub(super) const OPTIONS_BYTES: usize = 4 + 4 * NUMBERS;
const NUMBERS: usize = 6;
const NODELAY: u8 = 1;
const KEEPALIVE: u8 = 2;
const SWITCHES: u8 = NODELAY | KEEPALIVE;
/// The bit that says that the first number is given. The bits of the other numbers follow in order.
const FIRST_NUMBER: u8 = 4;

impl SocketOptions {
    /// Encodes the options:
    /// `given u8 | on u8 | zero u16 | idle u32 | interval u32 | probes u32 | user timeout u32 | send u32 | receive u32`
    pub(super) fn encode(&self) -> [u8; OPTIONS_BYTES] {
        let (mut given, mut on) = (0, 0);
        for (bit, value) in [(NODELAY, self.nodelay), (KEEPALIVE, self.keepalive)] {
            given |= if value.is_some() { bit } else { 0 };
            on |= if value == Some(true) { bit } else { 0 };
        }
        let mut bytes = [0; OPTIONS_BYTES];
        for (at, value) in self.numbers().into_iter().enumerate() {
            if let Some(value) = value {
                given |= FIRST_NUMBER << at;
                bytes[4 + 4 * at..][..4].copy_from_slice(&value.to_be_bytes());
            }
        }
        (bytes[0], bytes[1]) = (given, on);
        bytes
    }

    fn numbers(&self) -> [Option<u32>; NUMBERS] {
        [
            self.keep_idle,
            self.keep_interval,
            self.keep_probes,
            self.user_timeout,
            self.send_buffer,
            self.receive_buffer,
        ]
    }

    /// Decodes options. Values that are not given must be zero, so that equal options have equal bytes; otherwise this
    /// returns `None`.
    pub(super) fn decode(bytes: [u8; OPTIONS_BYTES]) -> Option<Self> {
        let [given, on, z1, z2, rest @ ..] = bytes;
        let mut numbers = [None; NUMBERS];
        let mut is_zero = (z1, z2) == (0, 0) && on & !(given & SWITCHES) == 0;
        for (at, (number, bytes)) in numbers.iter_mut().zip(rest.chunks_exact(4)).enumerate() {
            // Each chunk has four bytes.
            let value = bytes
                .iter()
                .fold(0, |value, byte| value << 8 | u32::from(*byte));
            let is_given = given & FIRST_NUMBER << at != 0;
            *number = is_given.then_some(value);
            is_zero &= is_given || value == 0;
        }
        if !is_zero {
            return None;
        }
        let switch = |bit| (given & bit != 0).then_some(on & bit != 0);
        let [
            keep_idle,
            keep_interval,
            keep_probes,
            user_timeout,
            send_buffer,
            receive_buffer,
        ] = numbers;
        Some(Self {
            nodelay: switch(NODELAY),
            keepalive: switch(KEEPALIVE),
            keep_idle,
            keep_interval,
            keep_probes,
            user_timeout,
            send_buffer,
            receive_buffer,
        })
    }
}
