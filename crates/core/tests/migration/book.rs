//! Entries that go from one table to another one with other indices.

use std::num::NonZeroU16;

use baton_abi::{
    LCCP_TCB_SACK, LCCP_TCB_WSCALE, NO_DATA_SERVER, Pool, SERVICE_OWNER, Service, ServiceKey,
    TCB_ADOPTING, TCB_AT_DOOR, TCB_RESUMING, TCB_WAITING, Tcb, TcbKey,
};
use baton_core::migration::{Book, Server};
use baton_wire::LeftOut;

use crate::entries::short;

const NOW: u32 = 5;
const SERVICE: &str = "10.77.0.100:80";

fn servers(order: &[Option<u32>]) -> Vec<Option<Server>> {
    let server = |number: u32| Server {
        address: short(number),
        present: true,
    };
    order.iter().map(|number| number.map(server)).collect()
}

fn pool(id: u64) -> Pool {
    Pool {
        id,
        ..Pool::default()
    }
}

fn numbered(id: u16, pool: u16) -> Service {
    Service {
        id,
        pool,
        ..Service::default()
    }
}

fn service() -> ServiceKey {
    ServiceKey::of(SERVICE.parse().unwrap())
}

/// The old table: data servers 0 to 2, pools 11 and 12, route 21.
fn old() -> Book {
    Book::new(
        servers(&[Some(0), Some(1), Some(2)]),
        &[pool(11), pool(12)],
        vec![0, 0, 21],
        [(service(), numbered(0, 0))],
    )
}

/// The new table: the same at other indices, but without data server 1.
fn new() -> Book {
    Book::new(
        servers(&[None, Some(2), None, Some(0)]),
        &[pool(0), pool(12), pool(11)],
        vec![0, 21, 0],
        [(service(), numbered(4, 2))],
    )
}

fn key() -> TcbKey {
    TcbKey::of(
        "198.51.100.7:40000".parse().unwrap(),
        SERVICE.parse().unwrap(),
    )
}

fn tcb() -> Tcb {
    Tcb {
        request_seq: 1,
        last_seq: 2,
        last_ack: 3,
        seen: NOW.wrapping_sub(9),
        owner: 0,
        previous: 2,
        pool: 1,
        mss: 1460,
        snd_wscale: 7,
        rcv_wscale: 9,
        options: (LCCP_TCB_SACK | LCCP_TCB_WSCALE) as u8,
        state: TCB_WAITING as u8,
        route: 2,
        counted: 3,
        ..Tcb::default()
    }
}

#[test]
fn to_the_same_table_nothing_changes() {
    let entry = old().export(&key(), &tcb(), NOW).unwrap();
    assert_eq!((entry.age, entry.mss), (9, NonZeroU16::new(1460).unwrap()));
    assert_eq!(old().import(&entry, NOW), Ok((key(), tcb())));
}

#[test]
fn indices_become_those_of_the_other_table() {
    let entry = old().export(&key(), &tcb(), NOW).unwrap();
    let (at, found) = new().import(&entry, 1000).unwrap();
    let expected = Tcb {
        owner: 3,
        previous: 1,
        pool: 1,
        route: 1,
        seen: 991,
        ..tcb()
    };
    assert_eq!((at, found), (key(), expected));
}

#[test]
fn without_its_owner_or_service_an_entry_is_left_out() {
    let of = |owner: u16| old().export(&key(), &Tcb { owner, ..tcb() }, NOW);
    assert_eq!(new().import(&of(1).unwrap(), NOW), Err(LeftOut::Owner));
    assert_eq!(of(3), None);
    let none = Book::new(servers(&[Some(0)]), &[], vec![], []);
    assert_eq!(none.import(&of(0).unwrap(), NOW), Err(LeftOut::Service));
}

/// If a data server does the counting itself, no other node counts, wherever the entry goes.
#[test]
fn what_its_owner_counts_stays_so() {
    let entry = old().export(&key(), &tcb(), NOW).unwrap();
    for (flags, state) in [(0, 0), (SERVICE_OWNER as u16, TCB_AT_DOOR)] {
        let service_there = Service {
            flags,
            ..numbered(4, 2)
        };
        let there = Book::new(
            servers(&[None, Some(2), None, Some(0)]),
            &[pool(0), pool(12), pool(11)],
            vec![],
            [(service(), service_there)],
        );
        let (_, found) = there.import(&entry, NOW).unwrap();
        assert_eq!(u32::from(found.state) & TCB_AT_DOOR, state);
    }
}

/// Nobody ends the move in the other table.
#[test]
fn an_entry_whose_response_moves_travels_with_its_last_owner() {
    let moves = Tcb {
        state: (TCB_AT_DOOR | TCB_RESUMING | TCB_ADOPTING) as u8,
        ..tcb()
    };
    let entry = old().export(&key(), &moves, NOW).unwrap();
    assert_eq!((entry.owner, entry.previous), (short(2), None));
    assert_eq!(u32::from(entry.state), TCB_AT_DOOR);
}

#[test]
fn what_else_is_unknown_becomes_nothing_in_particular() {
    let mut entry = old().export(&key(), &tcb(), NOW).unwrap();
    entry.pool = 99;
    entry.route = Some(98);
    entry.previous = Some(short(77));
    let (_, found) = new().import(&entry, NOW).unwrap();
    assert_eq!(found.pool, 2, "the service's own");
    assert_eq!(found.route, 4, "what no route takes");
    assert_eq!(u32::from(found.previous), NO_DATA_SERVER);
}

/// A connection can go on only with a data server that is configured.
#[test]
fn a_server_that_has_left_can_be_named_but_not_had() {
    let left = |present: bool| {
        let server = Server {
            address: short(0),
            present,
        };
        Book::new(
            vec![Some(server)],
            &[pool(11)],
            vec![],
            [(service(), numbered(0, 0))],
        )
    };
    let of_first = Tcb { pool: 0, ..tcb() };
    let entry = left(false).export(&key(), &of_first, NOW).unwrap();
    assert_eq!(left(false).import(&entry, NOW), Err(LeftOut::Owner));
    assert!(left(true).import(&entry, NOW).is_ok());
}

/// A packet was noted after the clock was read, so the entry seems to come from the future.
#[test]
fn nothing_is_younger_than_now() {
    let ahead = Tcb {
        seen: NOW + 1,
        ..tcb()
    };
    assert_eq!(old().export(&key(), &ahead, NOW).unwrap().age, 0);
}
