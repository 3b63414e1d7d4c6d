//! SYNs of every layout of options.

use crate::{
    options::{END, NOP, SACK, join, linux, mss, timestamps, unknown, wscale},
    segment::Segment,
};

const TSVAL: u32 = 0xdead_0001;

/// One SYN, and what the data server is to be told of it.
pub struct Case {
    pub name: &'static str,
    pub syn: fn(Segment) -> Segment,
    /// The number of bytes behind the packet.
    pub padding: usize,
    /// The MSS that the cookie keeps.
    pub mss: u16,
    pub scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
}

/// A SYN without any option.
const BARE: Case = Case {
    name: "no options",
    syn: |syn| syn.options([]),
    padding: 0,
    mss: 536,
    scale: None,
    sack: false,
    timestamps: false,
};

/// A SYN as Linux sends it.
const LINUX: Case = Case {
    name: "Linux",
    syn: |syn| syn.options(linux(TSVAL)),
    padding: 0,
    mss: 1460,
    scale: Some(7),
    sack: true,
    timestamps: true,
};

/// Every layout of options that we could think of.
pub const LAYOUTS: &[Case] = &[
    BARE,
    LINUX,
    Case {
        name: "MSS alone",
        syn: |syn| syn.options(mss(1460)),
        mss: 1460,
        ..BARE
    },
    Case {
        name: "scale alone",
        syn: |syn| syn.options(wscale(9)),
        scale: Some(9),
        ..BARE
    },
    Case {
        name: "SACK alone",
        syn: |syn| syn.options(SACK),
        sack: true,
        ..BARE
    },
    Case {
        name: "timestamps alone",
        syn: |syn| syn.options(timestamps(TSVAL, 0)),
        timestamps: true,
        ..BARE
    },
    Case {
        name: "no timestamps, as Windows",
        syn: |syn| syn.options(join([&mss(1460), &NOP, &wscale(8), &NOP, &NOP, &SACK])),
        scale: Some(8),
        timestamps: false,
        ..LINUX
    },
    Case {
        name: "no SACK",
        syn: |syn| {
            let times = timestamps(TSVAL, 0);
            syn.options(join([&mss(1460), &NOP, &NOP, &times, &NOP, &wscale(7)]))
        },
        sack: false,
        ..LINUX
    },
    Case {
        name: "no scale",
        syn: |syn| syn.options(join([&mss(1460)[..], &SACK, &timestamps(TSVAL, 0)])),
        scale: None,
        ..LINUX
    },
    Case {
        name: "no MSS",
        syn: |syn| syn.options(join([&SACK[..], &timestamps(TSVAL, 0), &NOP, &wscale(7)])),
        mss: 536,
        ..LINUX
    },
    Case {
        name: "scale and SACK",
        syn: |syn| syn.options(join([&wscale(2)[..], &SACK])),
        scale: Some(2),
        sack: true,
        ..BARE
    },
    Case {
        name: "as macOS: MSS, NOP, scale, NOP NOP timestamps, SACK, END",
        syn: |syn| {
            let times = timestamps(TSVAL, 0);
            syn.options(join([
                &mss(1460),
                &NOP,
                &wscale(6),
                &NOP,
                &NOP,
                &times,
                &SACK,
                &END,
            ]))
        },
        scale: Some(6),
        ..LINUX
    },
    Case {
        name: "in reverse order",
        syn: |syn| {
            syn.options(join([
                &wscale(7)[..],
                &timestamps(TSVAL, 0),
                &SACK,
                &mss(1460),
            ]))
        },
        ..LINUX
    },
    Case {
        name: "at odd offsets",
        syn: |syn| {
            let times = timestamps(TSVAL, 0);
            syn.options(join([
                &NOP[..],
                &mss(1460),
                &SACK,
                &NOP,
                &wscale(7),
                &times,
            ]))
        },
        ..LINUX
    },
    Case {
        name: "NOP before, between and behind",
        syn: |syn| {
            let nops = [1; 5];
            syn.options(join([
                &nops[..],
                &mss(1460),
                &nops,
                &SACK,
                &nops,
                &wscale(7),
                &nops,
            ]))
        },
        timestamps: false,
        ..LINUX
    },
    Case {
        name: "forty NOP",
        syn: |syn| syn.options([1; 40]),
        ..BARE
    },
    Case {
        name: "END hides the rest",
        syn: |syn| syn.options(join([&mss(1460)[..], &END, &wscale(7), &SACK])),
        mss: 1460,
        ..BARE
    },
    Case {
        name: "END hides a lie",
        syn: |syn| syn.options(join([&mss(1460)[..], &END, &[3, 0, 0]])),
        mss: 1460,
        ..BARE
    },
    Case {
        name: "END at once",
        syn: |syn| syn.options([0; 4]),
        ..BARE
    },
    Case {
        name: "forty bytes",
        syn: |syn| {
            let filler = unknown(254, &[0xaa; 18]);
            syn.options(join([&linux(TSVAL)[..], &filler]))
        },
        ..LINUX
    },
    Case {
        name: "MPTCP, as Apple's and Go's clients",
        syn: |syn| {
            let mptcp = unknown(30, &[1, 0x81]);
            syn.options(join([&linux(TSVAL)[..], &mptcp]))
        },
        ..LINUX
    },
    Case {
        name: "TCP Fast Open, asking for a cookie",
        syn: |syn| syn.options(join([&linux(TSVAL)[..], &unknown(34, &[]), &NOP, &NOP])),
        ..LINUX
    },
    Case {
        name: "TCP Fast Open with a cookie and data",
        syn: |syn| {
            let tfo = unknown(34, &[0x5a; 8]);
            syn.options(join([&linux(TSVAL)[..], &tfo]))
                .payload("GET / HTTP/1.1\r\n")
        },
        ..LINUX
    },
    Case {
        name: "experimental options first",
        syn: |syn| {
            let (a, b) = (unknown(253, &[0xf9, 0x89]), unknown(254, &[1, 2, 3]));
            syn.options(join([&a, &b, &linux(TSVAL)]))
        },
        ..LINUX
    },
    Case {
        name: "MD5 signature, which is for nobody here",
        syn: |syn| syn.options(join([&unknown(19, &[7; 16]), &mss(1460)[..], &SACK])),
        mss: 1460,
        sack: true,
        ..BARE
    },
    Case {
        name: "MSS twice: the last counts",
        syn: |syn| syn.options(join([mss(1460), mss(1200)].each_ref().map(|m| &m[..]))),
        mss: 1200,
        ..BARE
    },
    Case {
        name: "MSS of a wrong length is none",
        syn: |syn| syn.options(join([&[2, 3, 5][..], &SACK])),
        sack: true,
        ..BARE
    },
    Case {
        name: "timestamps of a wrong length are none",
        syn: |syn| syn.options(join([&mss(1460)[..], &unknown(8, &[1; 4])])),
        mss: 1460,
        ..BARE
    },
    Case {
        name: "scale 0 is not none",
        syn: |syn| syn.options(join([&mss(1460)[..], &wscale(0)])),
        mss: 1460,
        scale: Some(0),
        ..BARE
    },
    Case {
        name: "scale 14",
        syn: |syn| syn.options(wscale(14)),
        scale: Some(14),
        ..BARE
    },
    Case {
        name: "scale 15 is taken as 14 (RFC 7323, 2.3)",
        syn: |syn| syn.options(wscale(15)),
        scale: Some(14),
        ..BARE
    },
    Case {
        name: "scale 255 is taken as 14",
        syn: |syn| syn.options(wscale(255)),
        scale: Some(14),
        ..BARE
    },
    Case {
        name: "ECN: offered, not taken",
        syn: |syn| syn.flags("SEC"),
        ..LINUX
    },
    Case {
        name: "data on the SYN is ignored",
        syn: |syn| syn.payload("GET / HTTP/1.1\r\n\r\n"),
        ..LINUX
    },
    Case {
        name: "a big SYN",
        syn: |syn| syn.payload(vec![0x55; 1400]),
        ..LINUX
    },
    Case {
        name: "IP options",
        syn: |syn| syn.ip_options([0x94, 4, 0, 0]),
        ..LINUX
    },
    Case {
        name: "forty bytes of IP options and forty of TCP",
        syn: |syn| {
            let filler = unknown(253, &[9; 18]);
            syn.ip_options([1; 40])
                .options(join([&linux(TSVAL)[..], &filler]))
        },
        ..LINUX
    },
    Case {
        name: "Ethernet padding",
        syn: |syn| syn.options([]),
        padding: 6,
        ..BARE
    },
    Case {
        name: "PSH and URG on the SYN",
        syn: |syn| syn.flags("SPU"),
        ..LINUX
    },
    Case {
        name: "ISN 0",
        syn: |syn| syn.seq(0),
        ..LINUX
    },
    Case {
        name: "ISN before zero",
        syn: |syn| syn.seq(u32::MAX),
        ..LINUX
    },
];
