//! The TCB table: what an entry costs, and when it is forgotten.

use std::{fs, time::Duration};

use baton_abi::{TCB_FIN, TCB_RST, TICK_SHIFT, Tcb, TcbKey};
use baton_dataplane::{Options, Programs, Swept};
use nix::time::{ClockId, clock_gettime};

use super::forward::adopted;
use crate::prelude::*;

/// The memory of an entry as `kernel/bpf/hashtab.c` has it: the element's header, its key and value in whole words, and
/// a bucket.
#[test]
fn an_entry_fits_its_budget() {
    const ELEMENT_HEADER: usize = 48;
    const BUCKET: usize = 16;
    let words = |bytes: usize| bytes.next_multiple_of(8);
    let entry = ELEMENT_HEADER + words(size_of::<TcbKey>()) + words(size_of::<Tcb>()) + BUCKET;
    assert_eq!((size_of::<TcbKey>(), size_of::<Tcb>()), (24, 36));
    assert_eq!(entry, 128);
}

/// The memory that the kernel accounts for a table of a million entries, as `/proc/self/fdinfo` shows it.
#[test]
fn a_million_entries_cost_what_the_kernel_says() {
    const FLOWS: u32 = 1 << 20;
    let options = Options {
        roles: baton_abi::ROLE_CS,
        flows: FLOWS,
        kept_requests: 1024,
        xdp: baton_dataplane::XdpChoice::Auto,
        frags: false,
        pins: None,
    };
    let _programs = Programs::load(&options).unwrap();
    let field = |info: &str, name: &str| -> Option<u64> {
        let line = info.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let bytes = fs::read_dir("/proc/self/fdinfo")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok())
        // A ring may be as large, so the map's type is checked. 9 is BPF_MAP_TYPE_LRU_HASH.
        .filter(|info| field(info, "map_type:") == Some(9))
        .find(|info| field(info, "max_entries:") == Some(FLOWS.into()))
        .and_then(|info| field(&info, "memlock:"))
        .expect("the table is open here");
    let page = 1 << 12;
    assert!(bytes <= 136 * u64::from(FLOWS) + page, "{bytes} bytes");
    assert!(
        bytes > 120 * u64::from(FLOWS),
        "{bytes} bytes cannot be all of it"
    );
}

pub(super) const IDLE: Duration = Duration::from_secs(3600);
pub(super) const CLOSING: Duration = Duration::from_secs(60);

/// Each entry's name, age in seconds, state, and whether it is still there after the sweep.
const ENTRIES: &[(&str, i64, u32, bool)] = &[
    ("new", 0, 0, true),
    ("an hour less a minute", 3540, 0, true),
    ("an hour and a minute", 3660, 0, false),
    ("a day", 86_400, 0, false),
    ("closed just now", 0, TCB_FIN, true),
    ("closed half a minute ago", 30, TCB_FIN, true),
    ("closed two minutes ago", 120, TCB_FIN, false),
    ("reset half a minute ago", 30, TCB_RST, true),
    ("reset two minutes ago", 120, TCB_RST, false),
    ("both", 120, TCB_FIN | TCB_RST, false),
    ("noted after the sweep began", -5, TCB_FIN, true),
];

#[test]
fn entries_expire_when_they_should() {
    let node = Node::fresh_cs();
    let keys: Vec<TcbKey> = (0..).map(key).take(ENTRIES.len()).collect();
    for (key, &(_, age, state, _)) in keys.iter().zip(ENTRIES) {
        let tcb = Tcb {
            seen: tick_now().wrapping_sub(ticks(age)),
            state: state as u8,
            owner: 1,
            ..Tcb::default()
        };
        node.connection_server().set_tcb(key, &tcb).unwrap();
    }
    let live = ENTRIES.iter().filter(|(_, _, _, live)| *live).count() as u32;
    let expired = ENTRIES.len() as u32 - live;
    let swept = node.connection_server().sweep(IDLE, CLOSING).unwrap();
    assert_eq!(swept, Swept { live, expired });
    for (key, &(name, _, _, live)) in keys.iter().zip(ENTRIES) {
        let found = node.connection_server().tcb(key).unwrap().is_some();
        assert_eq!(found, live, "{name}");
    }
    let again = node.connection_server().sweep(IDLE, CLOSING).unwrap();
    assert_eq!(again, Swept { live, expired: 0 });
}

#[test]
fn live_flows_of_each_data_server() {
    let node = Node::fresh_cs();
    for (number, owner) in [0, 0, 1, 0, 2, 1, 0].into_iter().enumerate() {
        let seen = tick_now();
        let tcb = Tcb {
            seen,
            owner,
            ..Tcb::default()
        };
        node.connection_server()
            .set_tcb(&key(number as u8), &tcb)
            .unwrap();
    }
    for _ in 0..2 {
        node.connection_server().sweep(IDLE, CLOSING).unwrap();
        let flows: Vec<u32> = (0..4)
            .map(|index| node.connection_server().flows(index).unwrap())
            .collect();
        assert_eq!(flows, [4, 2, 1, 0]);
    }
}

/// An entry whose owner is out of range counts for no data server, and does no harm.
#[test]
fn an_owner_out_of_range() {
    let node = Node::fresh_cs();
    let seen = tick_now();
    let tcb = Tcb {
        seen,
        owner: 65535,
        ..Tcb::default()
    };
    node.connection_server().set_tcb(&key(1), &tcb).unwrap();
    let swept = node.connection_server().sweep(IDLE, CLOSING).unwrap();
    assert_eq!(
        swept,
        Swept {
            live: 1,
            expired: 0
        }
    );
}

#[test]
fn a_packet_keeps_its_entry_young() {
    let node = Node::fresh_cs();
    let (client, cookie) = adopted(&node);
    let old = Tcb {
        seen: tick_now().wrapping_sub(ticks(7200)),
        ..node.tcb(&client).unwrap()
    };
    node.connection_server()
        .set_tcb(&node.tcb_key(&client), &old)
        .unwrap();
    let ack = client.later(cookie, GET.len(), 1);
    let bytes = ack.packet().len() as u64;
    node.run(&ack.frame())
        .expect(Tx, &[("cs_forward", 1), ("cs_forward_bytes", bytes)]);
    let swept = node.connection_server().sweep(IDLE, CLOSING).unwrap();
    assert_eq!(
        swept,
        Swept {
            live: 1,
            expired: 0
        }
    );
}

/// In a full table a new entry displaces the least used one, never a new one.
#[test]
fn a_full_table_takes_new_connections() {
    let node = Node::fresh_cs();
    let capacity = node.connection_server().tcb_capacity();
    let seen = tick_now();
    for number in 0..capacity + 1000 {
        let key = TcbKey {
            client: mapped(number.into()),
            ..TcbKey::default()
        };
        node.connection_server()
            .set_tcb(
                &key,
                &Tcb {
                    seen,
                    ..Tcb::default()
                },
            )
            .unwrap();
    }
    let client = Client::fresh();
    let cookie = node.cookie(&client);
    node.run(&client.get(cookie).frame())
        .expect(Tx, &[("cs_adopt", 1)]);
    assert!(node.tcb(&client).is_some());
    let swept = node.connection_server().sweep(IDLE, CLOSING).unwrap();
    assert!(
        swept.live <= capacity && swept.live > capacity / 2,
        "{swept:?}"
    );
}

pub(super) fn key(number: u8) -> TcbKey {
    TcbKey {
        client: mapped([203, 0, 113, number].into()),
        be_client_port: 1,
        ..TcbKey::default()
    }
}

pub(super) fn ticks(seconds: i64) -> u32 {
    ((seconds * 1_000_000_000) >> TICK_SHIFT) as u32
}

/// The present time by the programs' coarse clock, in ticks.
pub(super) fn tick_now() -> u32 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    ((time.tv_sec() * 1_000_000_000 + time.tv_nsec()) >> TICK_SHIFT) as u32
}
