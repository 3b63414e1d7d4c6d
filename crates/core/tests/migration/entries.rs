//! Table entries to send.

use std::num::NonZeroU16;

use baton_wire::{Address, Endpoint, EntryKey, ShortAddress, TcbEntry};

pub fn short(number: u32) -> ShortAddress {
    ShortAddress::from_word(number + 1).unwrap()
}

/// Returns an entry in which everything follows from its number.
pub fn entry(number: u32) -> TcbEntry {
    let mut client = [0; 16];
    client[..4].copy_from_slice(&number.to_be_bytes());
    TcbEntry {
        key: EntryKey {
            client: Endpoint {
                address: Address::from_octets(client),
                port: number as u16,
            },
            cluster: short(99),
            port: 80,
        },
        pool: u64::from(number % 3) + 1,
        route: (!number.is_multiple_of(2)).then_some(7),
        request_seq: number.wrapping_mul(2_654_435_761),
        last_seq: number.wrapping_mul(2_654_435_761).wrapping_add(100),
        last_ack: number.wrapping_mul(40_503),
        age: 0,
        owner: short(number % 4),
        previous: number.is_multiple_of(7).then(|| short(5)),
        mss: NonZeroU16::new(1460).unwrap(),
        scales: None,
        sack: true,
        state: 0,
        attempt: number as u8,
    }
}

/// Changes the entry as if the client had sent its next request, and the connection had gone to another data server.
pub fn advance(entry: &mut TcbEntry) {
    entry.request_seq = entry.last_seq;
    entry.last_seq = entry.last_seq.wrapping_add(77);
    entry.last_ack = entry.last_ack.wrapping_add(4000);
    entry.previous = Some(entry.owner);
    entry.owner = short((entry.owner.word() + 1) % 4);
}
