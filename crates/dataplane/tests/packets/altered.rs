//! LCCP messages that are good but for one thing, for the checks that both programs make.

use baton_abi::{LCCP_RECEPTOR_DAEMON, LccpHeader};
use baton_wire::NodePair;

use crate::prelude::*;

/// Messages that are changed in different ways and of which the same comes. Each change has a name.
pub struct Altered {
    /// What comes of them; None if it is what comes of the good message.
    pub then: Option<(Verdict, Counted<'static>)>,
    pub for_daemon: bool,
    /// Change the header before it is tagged.
    pub header: &'static [(&'static str, fn(&mut LccpHeader))],
    /// Change what follows the header, also before the tag is made.
    pub carried: &'static [(&'static str, fn(&mut Vec<u8>))],
    /// Change the whole message after it was tagged.
    pub tagged: &'static [(&'static str, fn(&mut Vec<u8>))],
}

pub const GOOD: Altered = Altered {
    then: None,
    for_daemon: false,
    header: &[],
    carried: &[],
    tagged: &[],
};

pub const fn dropped(counted: Counted<'static>) -> Altered {
    Altered {
        then: Some((Drop, counted)),
        ..GOOD
    }
}

const fn for_daemon(verdict: Verdict, counted: Counted<'static>) -> Altered {
    Altered {
        then: Some((verdict, counted)),
        for_daemon: true,
        ..GOOD
    }
}

pub const SHORT: Counted<'_> = &[("lccp_short", 1)];
pub const VERSION: Counted<'_> = &[("lccp_bad_version", 1)];
pub const TAG: Counted<'_> = &[("lccp_bad_tag", 1)];
pub const STALE: Counted<'_> = &[("lccp_stale", 1)];
pub const UNKNOWN: Counted<'_> = &[("lccp_unknown", 1)];

/// Messages of which the same comes at both programs.
const EVERYWHERE: &[Altered] = &[
    Altered {
        header: &[
            ("good", |_| ()),
            ("9 s old", |h| shift(h, -9)),
            ("9 s ahead", |h| shift(h, 9)),
        ],
        ..GOOD
    },
    Altered {
        header: &[
            ("11 s old", |h| shift(h, -11)),
            ("11 s ahead", |h| shift(h, 11)),
            ("of 1970", |h| h.be_clock = 0),
        ],
        ..dropped(STALE)
    },
    Altered {
        header: &[("version 0", |h| h.version = 0)],
        ..dropped(VERSION)
    },
    Altered {
        tagged: &[
            ("last bit of the tag", |message| message[79] ^= 1),
            ("no tag", |message| message[72..80].fill(0)),
        ],
        ..dropped(TAG)
    },
    Altered {
        header: &[
            ("receptor 0", |h| h.receptor = 0),
            ("command 0", |h| h.command = 0),
        ],
        ..dropped(UNKNOWN)
    },
    Altered {
        tagged: &[
            ("one byte less than a header", |m| m.truncate(79)),
            ("nothing", |message| message.clear()),
        ],
        ..dropped(SHORT)
    },
    Altered {
        tagged: &[("with a wrong tag", |message| message[72] ^= 0xff)],
        ..for_daemon(Drop, TAG)
    },
    Altered {
        header: &[("11 s old", |h| shift(h, -11))],
        ..for_daemon(Drop, STALE)
    },
    Altered {
        header: &[("of version 1", |h| h.version = 1)],
        ..for_daemon(Drop, VERSION)
    },
    Altered {
        header: &[("around a packet", |_| ())],
        ..for_daemon(Pass, &[("lccp_to_daemon", 1)])
    },
];

/// Makes a message of a good header and a packet.
pub type Make<'a> = &'a dyn Fn(LccpHeader, Vec<u8>, NodePair) -> Vec<u8>;

/// Has `run` make and run each of the messages of [`EVERYWHERE`] and of `more`. `good` is what comes of a good message.
pub fn check_all(
    more: &[Altered],
    good: (Verdict, Counted<'_>),
    run: impl Fn(&str, Make<'_>) -> Seen,
) {
    let nothing = |_: &mut Vec<u8>| ();
    for group in EVERYWHERE.iter().chain(more) {
        let check = |name: &str,
                     header: fn(&mut LccpHeader),
                     carried: fn(&mut Vec<u8>),
                     tagged: fn(&mut Vec<u8>)| {
            let name = &format!("{name}, for the daemon: {}", group.for_daemon);
            let make = |mut head: LccpHeader, mut packet: Vec<u8>, pair: NodePair| {
                if group.for_daemon {
                    head.receptor = LCCP_RECEPTOR_DAEMON as u8;
                }
                header(&mut head);
                carried(&mut packet);
                let mut message = sealed(head, &key().lccp(), pair, &packet);
                tagged(&mut message);
                message
            };
            let (verdict, counted) = group.then.unwrap_or(good);
            run(name, &make).expect_of(name, verdict, counted);
        };
        for (name, change) in group.header {
            check(name, *change, nothing, nothing);
        }
        for (name, change) in group.carried {
            check(&format!("carries {name}"), |_| (), *change, nothing);
        }
        for (name, change) in group.tagged {
            check(name, |_| (), nothing, *change);
        }
    }
}
