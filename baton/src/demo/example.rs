//! A good run of small size, for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_lab::Counted;

use super::access_log::{AccessLog, Entry};
use super::curl::Answer;
use super::link::LinkStats;
use super::wire::Wire;
use super::wrk::Load;
use super::{FileFacts, Observed};

/// The observations of a run with two data servers: two requests, two on one connection, a download of 8 bytes, one
/// request of load.
pub fn observed() -> Observed {
    let answer = |path: &str, says: &str, port: u16, connections, bytes| Answer {
        path: path.to_owned(),
        status: 200,
        says: says.to_owned(),
        server: ([10, 77, 0, 100], 80).into(),
        client: ([10, 77, 0, 1], port).into(),
        connections,
        bytes,
        seconds: 0.5,
    };
    let log = |server: &str, entries: &[(&str, u16, u64)]| AccessLog {
        server: server.to_owned(),
        entries: entries
            .iter()
            .map(|(path, port, bytes)| Entry {
                client: ([10, 77, 0, 1], *port).into(),
                path: (*path).to_owned(),
                bytes: *bytes,
            })
            .collect(),
    };
    let crossed = |packets, bytes| Counted { packets, bytes };
    Observed {
        cluster: ([10, 77, 0, 100], 80).into(),
        client: [10, 77, 0, 1].into(),
        cs: "cs1".to_owned(),
        servers: vec!["ds1".to_owned(), "ds2".to_owned()],
        singles: vec![
            answer("/whoami", "ds1", 1001, 1, 4),
            answer("/whoami", "ds2", 1002, 1, 4),
        ],
        kept: vec![
            answer("/ds1/page-0", "ds1 /ds1/page-0", 1003, 1, 4),
            answer("/ds2/page-1", "ds2 /ds2/page-1", 1003, 0, 4),
        ],
        download: (answer("/64m", "", 1004, 1, 8), "abc".to_owned()),
        file: FileFacts {
            bytes: 8,
            sha256: "abc".to_owned(),
        },
        load: Load {
            words: "-c1 http://10.77.0.100/4k".to_owned(),
            requests: 1,
            rate: 1234.5,
            median: "700us".to_owned(),
            slowest_hundredth: "2ms".to_owned(),
            errors: None,
        },
        load_bytes: 4096,
        logs: vec![
            log(
                "ds1",
                &[
                    ("/whoami", 1001, 4),
                    ("/ds1/page-0", 1003, 4),
                    ("/4k", 1005, 4096),
                ],
            ),
            log(
                "ds2",
                &[
                    ("/whoami", 1002, 4),
                    ("/ds2/page-1", 1003, 4),
                    ("/64m", 1004, 8),
                ],
            ),
        ],
        wire: Wire {
            asked: crossed(20, 1200),
            greeted: crossed(5, 300),
            forwarded: crossed(10, 600),
            told: crossed(5, 900),
            detoured: crossed(0, 0),
            answered: BTreeMap::from([
                ("ds1".to_owned(), crossed(6, 5000)),
                ("ds2".to_owned(), crossed(4, 400)),
            ]),
        },
        link: LinkStats {
            packets_in: 20,
            bytes_in: 1480,
            packets_out: 20,
            bytes_out: 2080,
        },
        counters: BTreeMap::from([
            ("cs_response_bytes".to_owned(), 0),
            ("cs_adopt".to_owned(), 5),
            ("cs_syn".to_owned(), 5),
            ("cs_forward".to_owned(), 10),
            ("cs_moved_on".to_owned(), 1),
        ]),
        took: Duration::from_secs(9),
    }
}
