//! What a head says about its body: how long it is, or that it goes on to its last chunk.

use super::{Case, Divided, Followed, GoesOn, Odd, Plain, run};

const LENGTHS: &[Case] = &[
    ("five", GoesOn(5), "Content-Length: 5"),
    ("more", GoesOn(12_345), "Content-Length: 12345"),
    ("none", Plain, "Content-Length: 0"),
    ("in other letters", GoesOn(2), "cOnTeNt-LeNgTh:2"),
    ("zeros before", GoesOn(5), "Content-Length: 000000005"),
    (
        "as much as is known at once",
        GoesOn(0x3fff_ffff),
        "Content-Length: 1073741823",
    ),
    ("one more", Followed, "Content-Length: 1073741824"),
    ("beyond 32 bits", Followed, "Content-Length: 4294967301"),
    (
        "of 18 digits",
        Followed,
        "Content-Length: 999999999999999999",
    ),
    ("of 19 digits", Odd, "Content-Length: 1000000000000000000"),
    ("of 19 zeros", Odd, "Content-Length: 0000000000000000005"),
    ("2^63 - 1", Odd, "Content-Length: 9223372036854775807"),
    ("2^63", Odd, "Content-Length: 9223372036854775808"),
    ("2^64 and five", Odd, "Content-Length: 18446744073709551621"),
    ("two of them", Odd, "Content-Length: 5|Content-Length: 5"),
    (
        "two that differ",
        Odd,
        "Content-Length: 5|X: y|Content-Length: 6",
    ),
    ("a list", Odd, "Content-Length: 5, 5"),
    ("a list without blanks", Odd, "Content-Length: 5,5"),
    ("no value", Odd, "Content-Length:"),
    ("a blank for a value", Odd, "Content-Length: "),
    ("two blanks before", Odd, "Content-Length:  5"),
    ("a tab before", Odd, "Content-Length:\t5"),
    ("a blank behind", Odd, "Content-Length: 5 "),
    ("a tab behind", Odd, "Content-Length: 5\t"),
    ("a blank in it", Odd, "Content-Length: 5 5"),
    ("a plus sign", Odd, "Content-Length: +5"),
    ("a minus sign", Odd, "Content-Length: -5"),
    ("minus zero", Odd, "Content-Length: -0"),
    ("hexadecimal", Odd, "Content-Length: 0x5"),
    ("a fraction", Odd, "Content-Length: 5.0"),
    ("an exponent", Odd, "Content-Length: 5e1"),
    ("in quotes", Odd, "Content-Length: \"5\""),
    ("folded", Odd, "Content-Length:| 5"),
    ("a blank before the colon", Odd, "Content-Length : 5"),
    ("no colon", Odd, "Content-Length 5"),
    ("a longer name", Odd, "Content-Lengthy: 5"),
    ("an underscore", Plain, "Content_Length: 5"),
    ("another's", Plain, "X-Content-Length: 5"),
    ("in a value", Plain, "X: Content-Length: 5"),
];

const CODINGS: &[Case] = &[
    ("chunked", Followed, "Transfer-Encoding: chunked"),
    ("in other letters", Followed, "TRANSFER-encoding:Chunked"),
    (
        "two of them",
        Odd,
        "Transfer-Encoding: chunked|Transfer-Encoding: chunked",
    ),
    ("twice", Odd, "Transfer-Encoding: chunked, chunked"),
    ("another before", Odd, "Transfer-Encoding: gzip, chunked"),
    (
        "another behind",
        Odd,
        "Transfer-Encoding: chunked, identity",
    ),
    ("another one", Odd, "Transfer-Encoding: identity"),
    (
        "another in a line of its own",
        Odd,
        "Transfer-Encoding: gzip|Transfer-Encoding: chunked",
    ),
    ("one that ends so", Odd, "Transfer-Encoding: xchunked"),
    ("a parameter", Odd, "Transfer-Encoding: chunked;a=b"),
    ("in quotes", Odd, "Transfer-Encoding: \"chunked\""),
    ("no value", Odd, "Transfer-Encoding:"),
    ("two blanks before", Odd, "Transfer-Encoding:  chunked"),
    ("a tab before", Odd, "Transfer-Encoding:\tchunked"),
    (
        "a vertical tab before",
        Odd,
        "Transfer-Encoding:\u{b}chunked",
    ),
    ("a blank behind", Odd, "Transfer-Encoding: chunked "),
    ("folded", Odd, "Transfer-Encoding:| chunked"),
    (
        "a blank before the colon",
        Odd,
        "Transfer-Encoding : chunked",
    ),
    (
        "a tab before the colon",
        Odd,
        "Transfer-Encoding\t: chunked",
    ),
    ("an underscore", Odd, "Transfer_Encoding: chunked"),
    (
        "a length behind",
        Odd,
        "Transfer-Encoding: chunked|Content-Length: 5",
    ),
    (
        "a length before",
        Odd,
        "Content-Length: 5|Transfer-Encoding: chunked",
    ),
    ("another's", Plain, "X-Transfer-Encoding: chunked"),
    ("what a client takes", Plain, "TE: trailers"),
];

/// Requests with bytes behind the empty line that ends the head.
const BODIES: &[Case] = &[
    ("all of it", Plain, "Content-Length: 2||ab"),
    ("a part of it", GoesOn(3), "Content-Length: 5||ab"),
    ("more than it", Divided(1), "Content-Length: 1||ab"),
    ("more than nothing", Divided(2), "Content-Length: 0||ab"),
    ("without a length", Divided(2), "Host: a||ab"),
    (
        "what no head may have",
        Plain,
        "Content-Length: 9||\0\r\n\n :\r\r\0",
    ),
    (
        "whole chunks",
        Plain,
        "Transfer-Encoding: chunked||2|ab|0||",
    ),
    ("a chunk", Followed, "Transfer-Encoding: chunked||2|ab|"),
    (
        "more than chunks",
        Divided(1),
        "Transfer-Encoding: chunked||0||x",
    ),
];

/// Requests of HTTP/1.0: servers ignore Transfer-Encoding in them, or refuse them because of it (RFC 9112, 6.1).
const OLD: &[Case] = &[
    ("chunked", Odd, "Transfer-Encoding: chunked||0||"),
    ("a length", Plain, "Content-Length: 2||ab"),
];

#[test]
fn every_length() {
    run(LENGTHS, |lines| {
        format!("POST /ds{{}}/ HTTP/1.1|Host: a|{lines}|X: y||")
    });
}

#[test]
fn a_length_of_a_request_without_content() {
    run(&LENGTHS[..4], |lines| {
        format!("GET /ds{{}}/ HTTP/1.1|{lines}||")
    });
}

#[test]
fn every_coding() {
    run(CODINGS, |lines| {
        format!("POST /ds{{}}/ HTTP/1.1|Host: a|{lines}|X: y||")
    });
}

#[test]
fn every_end_of_a_body() {
    run(BODIES, |rest| format!("PUT /ds{{}}/ HTTP/1.1|{rest}"));
}

#[test]
fn before_chunks_were_known() {
    run(OLD, |rest| format!("POST /ds{{}}/ HTTP/1.0|{rest}"));
}
