//! Host lines: all paths of `a.test` are another data server's. On other hosts any data server may answer `/`.

use super::{Outcome, meet_all, run_whole};

const HERE: Outcome = Outcome::Here(0);

#[test]
fn every_host_line() {
    let long = format!("Host: {}.a.test", "x".repeat(300));
    let cases = [
        ("Host: a.test", Outcome::Elsewhere),
        ("Host: A.Test:80", Outcome::Elsewhere),
        ("X: y|Host:a.test ", Outcome::Elsewhere),
        ("Host: b.test", HERE),
        ("Host: b.test|X-Host: a.test", HERE),
        ("Host: b.test|X: Host: a.test", HERE),
        // Servers ignore a dot at the end of a host.
        ("Host: a.test.", Outcome::Agent),
        ("Host: a.test.:80", Outcome::Agent),
        ("Host:", Outcome::Agent),
        ("Host: ", Outcome::Agent),
        ("Host: :80", Outcome::Agent),
        ("Host: .", Outcome::Agent),
        ("Host:\ta.test", Outcome::Agent),
        ("Host:     a.test", Outcome::Agent),
        ("Host : a.test", Outcome::Agent),
        ("Host\t: a.test", Outcome::Agent),
        (" Host: a.test", Outcome::Agent),
        ("Host: b.test| a.test", Outcome::Agent),
        ("Host: b.test|Host: a.test", Outcome::Agent),
        ("Host: b.test|X: y|HOST: b.test", Outcome::Agent),
        (&long, Outcome::Agent),
    ];
    meet_all(|at| {
        for (lines, outcome) in cases {
            let lines = lines.replace('|', "\r\n");
            at.meets(
                &lines,
                format!("GET / HTTP/1.1\r\n{lines}\r\n\r\n"),
                outcome,
            );
        }
    });
}

#[test]
fn a_request_may_name_no_host() {
    run_whole(&[
        ("GET / HTTP/1.0||", HERE),
        ("GET / HTTP/1.1|X: y||", HERE),
        ("GET /ds2/ HTTP/1.0||", Outcome::Elsewhere),
    ]);
}
