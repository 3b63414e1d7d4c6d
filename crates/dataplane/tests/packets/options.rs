//! TCP options, byte by byte, because no library would write many of the layouts under test.

pub const END: [u8; 1] = [0];
pub const NOP: [u8; 1] = [1];
pub const SACK: [u8; 2] = [4, 2];

pub fn mss(bytes: u16) -> [u8; 4] {
    let [high, low] = bytes.to_be_bytes();
    [2, 4, high, low]
}

pub fn wscale(shift: u8) -> [u8; 3] {
    [3, 3, shift]
}

pub fn timestamps(value: u32, echo: u32) -> [u8; 10] {
    let mut option = [8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
    option[2..6].copy_from_slice(&value.to_be_bytes());
    option[6..].copy_from_slice(&echo.to_be_bytes());
    option
}

/// An option of a kind that the programs do not know.
pub fn unknown(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind, 2 + body.len() as u8], body].concat()
}

/// What Linux sends in its SYN.
pub fn linux(value: u32) -> Vec<u8> {
    join([
        &mss(1460)[..],
        &SACK,
        &timestamps(value, 0),
        &NOP,
        &wscale(7),
    ])
}

/// NOP NOP TIMESTAMPS: what Linux sends in every later segment.
pub fn linux_later(value: u32, echo: u32) -> Vec<u8> {
    join([&NOP[..], &NOP, &timestamps(value, echo)])
}

pub fn join<const N: usize>(options: [&[u8]; N]) -> Vec<u8> {
    options.concat()
}
