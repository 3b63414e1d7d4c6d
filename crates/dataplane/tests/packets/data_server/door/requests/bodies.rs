//! Where a request's body ends, by Content-Length and Transfer-Encoding. The notation is that of the parent module.

use super::{Case, Divided, Followed, GoesOn, Odd, Plain, run};

const LENGTHS: &[Case] = &[
    ("five", GoesOn(5), "Content-Length: 5"),
    ("more", GoesOn(12_345), "Content-Length: 12345"),
    ("zero", Plain, "Content-Length: 0"),
    ("other upper and lower case", GoesOn(2), "cOnTeNt-LeNgTh:2"),
    ("leading zeros", GoesOn(5), "Content-Length: 000000005"),
    (
        "the longest that is not followed",
        GoesOn(0x3fff_ffff),
        "Content-Length: 1073741823",
    ),
    ("one byte longer", Followed, "Content-Length: 1073741824"),
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
    ("two lines", Odd, "Content-Length: 5|Content-Length: 5"),
    (
        "two that differ",
        Odd,
        "Content-Length: 5|X: y|Content-Length: 6",
    ),
    ("a list", Odd, "Content-Length: 5, 5"),
    ("a list without blanks", Odd, "Content-Length: 5,5"),
    ("no value", Odd, "Content-Length:"),
    ("a blank for a value", Odd, "Content-Length: "),
    ("two blanks before the value", Odd, "Content-Length:  5"),
    ("a tab before the value", Odd, "Content-Length:\t5"),
    ("a blank after the value", Odd, "Content-Length: 5 "),
    ("a tab after the value", Odd, "Content-Length: 5\t"),
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
    ("an underscore for the hyphen", Plain, "Content_Length: 5"),
    (
        "a longer name that ends the same",
        Plain,
        "X-Content-Length: 5",
    ),
    ("in another header's value", Plain, "X: Content-Length: 5"),
];

const CODINGS: &[Case] = &[
    ("chunked", Followed, "Transfer-Encoding: chunked"),
    (
        "other upper and lower case",
        Followed,
        "TRANSFER-encoding:Chunked",
    ),
    (
        "two lines",
        Odd,
        "Transfer-Encoding: chunked|Transfer-Encoding: chunked",
    ),
    ("twice", Odd, "Transfer-Encoding: chunked, chunked"),
    (
        "another coding before it",
        Odd,
        "Transfer-Encoding: gzip, chunked",
    ),
    (
        "another coding after it",
        Odd,
        "Transfer-Encoding: chunked, identity",
    ),
    ("another coding", Odd, "Transfer-Encoding: identity"),
    (
        "another coding in a line of its own",
        Odd,
        "Transfer-Encoding: gzip|Transfer-Encoding: chunked",
    ),
    (
        "a coding whose name ends in chunked",
        Odd,
        "Transfer-Encoding: xchunked",
    ),
    ("a parameter", Odd, "Transfer-Encoding: chunked;a=b"),
    ("in quotes", Odd, "Transfer-Encoding: \"chunked\""),
    ("no value", Odd, "Transfer-Encoding:"),
    (
        "two blanks before the value",
        Odd,
        "Transfer-Encoding:  chunked",
    ),
    ("a tab before the value", Odd, "Transfer-Encoding:\tchunked"),
    (
        "a vertical tab before the value",
        Odd,
        "Transfer-Encoding:\u{b}chunked",
    ),
    (
        "a blank after the value",
        Odd,
        "Transfer-Encoding: chunked ",
    ),
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
    // Any name that begins with "transfer" must be exactly "Transfer-Encoding: chunked".
    (
        "an underscore for the hyphen",
        Odd,
        "Transfer_Encoding: chunked",
    ),
    (
        "Content-Length after it",
        Odd,
        "Transfer-Encoding: chunked|Content-Length: 5",
    ),
    (
        "Content-Length before it",
        Odd,
        "Content-Length: 5|Transfer-Encoding: chunked",
    ),
    (
        "a longer name that ends the same",
        Plain,
        "X-Transfer-Encoding: chunked",
    ),
    ("TE, which is about the response", Plain, "TE: trailers"),
];

/// Requests whose packet goes on after the empty line that ends the head.
const BODIES: &[Case] = &[
    ("the whole body", Plain, "Content-Length: 2||ab"),
    ("a part of the body", GoesOn(3), "Content-Length: 5||ab"),
    ("bytes after the body", Divided(1), "Content-Length: 1||ab"),
    (
        "bytes after an empty body",
        Divided(2),
        "Content-Length: 0||ab",
    ),
    ("bytes without a length", Divided(2), "Host: a||ab"),
    (
        "control characters in the body",
        Plain,
        "Content-Length: 9||\0\r\n\n :\r\r\0",
    ),
    ("all chunks", Plain, "Transfer-Encoding: chunked||2|ab|0||"),
    (
        "a chunk, not the last",
        Followed,
        "Transfer-Encoding: chunked||2|ab|",
    ),
    (
        "a byte after the last chunk",
        Divided(1),
        "Transfer-Encoding: chunked||0||x",
    ),
];

/// Requests of HTTP/1.0. With Transfer-Encoding their framing counts as faulty (RFC 9112, 6.1): some servers ignore the
/// header, others refuse the request.
const HTTP_1_0: &[Case] = &[
    ("chunked", Odd, "Transfer-Encoding: chunked||0||"),
    ("a length", Plain, "Content-Length: 2||ab"),
];

#[test]
fn every_content_length() {
    run(LENGTHS, |lines| {
        format!("POST /ds{{}}/ HTTP/1.1|Host: a|{lines}|X: y||")
    });
}

#[test]
fn content_length_of_a_get() {
    // The first four have valid lengths.
    run(&LENGTHS[..4], |lines| {
        format!("GET /ds{{}}/ HTTP/1.1|{lines}||")
    });
}

#[test]
fn every_transfer_encoding() {
    run(CODINGS, |lines| {
        format!("POST /ds{{}}/ HTTP/1.1|Host: a|{lines}|X: y||")
    });
}

#[test]
fn bodies_in_the_packet() {
    run(BODIES, |rest| format!("PUT /ds{{}}/ HTTP/1.1|{rest}"));
}

#[test]
fn http_1_0() {
    run(HTTP_1_0, |rest| format!("POST /ds{{}}/ HTTP/1.0|{rest}"));
}
