//! What user space has judged is not shown to it again.

use baton_dataplane::{Punt, Punts, Resumed};

use super::{
    HEAD,
    in_parts::{judged, let_go, read, two_parts},
};
use crate::{
    cluster::HTTP,
    cs::http::{ANSWER, Connection, get},
    node::{Drop, Node},
    segment::{Client, Segment},
};

/// What user space can say about a packet.
#[derive(Clone, Copy, Debug)]
enum Says {
    Leads,
    Refuses,
    Follows,
    Repeats,
    Asks,
}

impl Says {
    const ALL: [Self; 5] = [
        Self::Leads,
        Self::Refuses,
        Self::Follows,
        Self::Repeats,
        Self::Asks,
    ];

    fn about(self, punts: &Punts, punt: &Punt) -> Resumed {
        match self {
            Self::Leads => punts.resume(punt, None, None),
            Self::Refuses => punts.refuse(punt),
            Self::Follows => punts.follow(punt),
            Self::Repeats => punts.repeat(punt),
            Self::Asks => punts.ask(punt),
        }
        .unwrap()
    }

    /// Nothing but what was shown as behind something follows that. Nothing is repeated because it was repeated before.
    fn is_said_of(self, punt: &Punt) -> bool {
        match self {
            Self::Leads | Self::Refuses | Self::Asks => !punt.is_behind,
            Self::Follows => punt.is_behind,
            Self::Repeats => punt.is_behind && !punt.is_repeat,
        }
    }
}

/// It has judged the packet in one piece. The parts would come back as if their client had sent them, and what comes of those
/// could be the same packet again.
#[test]
fn what_was_judged_is_not_divided() {
    let (node, punts) = judged();
    let request = get("/ds2/");
    let answered = |first: &str| {
        let mut connection = Connection::open_any(&node, first);
        connection.ack += ANSWER;
        connection
    };
    let post = |length: &str| format!("POST /ds1/ HTTP/1.1\r\n{HEAD}{length}\r\n\r\n");
    let bytes = answered(&post("Content-Length: 4"));
    let chunked = answered(&post("Transfer-Encoding: chunked"));
    let client = Client::of(HTTP);
    for (name, packet) in [
        ("two requests", answered(&request).data(request.repeat(2))),
        (
            "the first two of a connection",
            client.get(node.cookie(&client)).payload(request.repeat(2)),
        ),
        (
            "a body, and a request",
            bytes.data(format!("body{request}")),
        ),
        (
            "chunks, and a request",
            chunked.data(format!("4\r\nbody\r\n0\r\n\r\n{request}")),
        ),
    ] {
        node.run(&packet.frame())
            .check(Drop, &[("cs_divided", 1)])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let [punt] = &read(&punts)[..] else {
            panic!("one frame");
        };
        let whole = Punt {
            divide_at: None,
            ..punt.clone()
        };
        for says in Says::ALL {
            node.look();
            assert_eq!(says.about(&punts, &whole), Resumed::Dropped, "{name}");
            let moved: Vec<_> = node.moved().into_iter().collect();
            let shown = read(&punts);
            // Nobody has read what only waited.
            if let Says::Follows = says {
                assert_eq!(moved, [("cs_divided".into(), 1)], "{name}");
                assert_eq!(shown, std::slice::from_ref(punt), "{name}");
            } else {
                assert_eq!(moved, [("cs_undivided".into(), 1)], "{name}, {says:?}");
                assert_eq!(shown, [], "{name}, {says:?}");
            }
        }
        // Its client has it still.
        node.run(&packet.frame())
            .check(Drop, &[("cs_divided", 1)])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        read(&punts);
    }
}

/// A part of a head that user space sends again, and that is not as the entry knows it: user space has compared it already, so
/// its owner is asked.
#[test]
fn a_part_that_was_read_and_does_not_fit() {
    let (node, punts) = judged();
    let head = get("/ds2/");
    let [first, rest] = two_parts(&node, &Client::of(HTTP), &head);
    node.run(&first.frame());
    node.run(&rest.frame());
    let_go(&punts, &read(&punts), &head, 0);
    let longer = rest.clone().payload(format!("{}more", &head[10..]));
    node.run(&longer.frame())
        .expect(Drop, &[("cs_punted_behind", 1)]);
    let [punt] = &read(&punts)[..] else {
        panic!("one frame");
    };
    node.look();
    assert!(matches!(punts.repeat(punt).unwrap(), Resumed::Leaves(_)));
    let moved: Vec<_> = node.moved().into_iter().collect();
    assert_eq!(moved, [("cs_again".into(), 1)]);
    assert_eq!(read(&punts), []);
}

/// Whatever user space says of what it is shown, and of what is shown because of that: it makes an end.
#[test]
fn nothing_goes_round() {
    let head = get("/ds2/");
    let parts = |packet: Segment| {
        let rest = packet.seq.wrapping_add(10);
        let rest = packet.clone().seq(rest).payload(&head[10..]);
        [packet.payload(&head[..10]), rest]
    };
    let of_new = |node: &Node, client: &Client| parts(client.get(node.cookie(client)));
    let cases: [(&str, &dyn Fn(&Node) -> [Segment; 2]); 3] = [
        ("a new connection", &|node| of_new(node, &Client::of(HTTP))),
        ("one on used ports", &|node| {
            of_new(node, &Connection::answered(node).client.again())
        }),
        ("a further request", &|node| {
            parts(Connection::answered(node).data(""))
        }),
    ];
    for (name, begin) in cases {
        for says in Says::ALL {
            let (node, punts) = judged();
            let packets = begin(&node);
            // Once more when something of it is there.
            for packet in packets.iter().chain(&packets) {
                node.run(&packet.frame());
                let shown = read(&punts);
                for punt in &shown {
                    says.about(&punts, punt);
                    end_of(&punts, 0, name);
                }
            }
        }
    }
}

fn end_of(punts: &Punts, steps: usize, name: &str) {
    for punt in read(punts) {
        assert!(steps < 3, "{name}: {punt:?}");
        for says in Says::ALL.into_iter().filter(|says| says.is_said_of(&punt)) {
            says.about(punts, &punt);
            end_of(punts, steps + 1, name);
        }
    }
}
