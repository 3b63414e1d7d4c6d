//! Random paths against a slow reference, which rewrites text until nothing changes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use baton_wire::{BadPath, Path};
use proptest::collection::vec;
use proptest::prelude::*;

/// Paths in which texts that matter to the rule occur much more often than by chance.
fn path() -> impl Strategy<Value = Vec<u8>> {
    let pieces = proptest::sample::select(vec![
        "/", "/", "/", ".", "..", "%2f", "%2F", "%2e", "%2E", "%41", "%25", "%3f", "%3F", "%23",
        "%20", "%", "%00", "%0", "%7f", "a", "b", "2e", "\\", ";", "?", "#", "\u{e4}", "\t",
    ]);
    vec(pieces, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()).into_bytes())
}

/// The reference: decodes the path, and then rewrites the text until nothing changes.
fn reference(path: &[u8]) -> Result<Vec<u8>, BadPath> {
    if path.first() != Some(&b'/') {
        return Err(BadPath::NotAbsolute);
    }
    let mut text = Vec::new();
    let mut at = 0;
    while at < path.len() {
        let byte = if path[at] == b'%' {
            let digits = path.get(at + 1..at + 3).ok_or(BadPath::Escape)?;
            let is_hexadecimal = digits.iter().all(u8::is_ascii_hexdigit);
            let digits = std::str::from_utf8(digits).ok().filter(|_| is_hexadecimal);
            at += 2;
            u8::from_str_radix(digits.ok_or(BadPath::Escape)?, 16).unwrap()
        } else if path[at].is_ascii_control() && path[at] != 0 {
            return Err(BadPath::Control);
        } else {
            path[at]
        };
        if byte == 0 {
            return Err(BadPath::Nul);
        }
        text.push(byte);
        at += 1;
    }
    let replace = |text: &mut Vec<u8>, what: &[u8]| {
        let found = text.windows(what.len()).position(|window| window == what);
        found.is_some_and(|at| {
            text.splice(at..at + what.len(), *b"/");
            true
        })
    };
    // The end of the path also ends a segment.
    let is_folder = text.ends_with(b"/.") || text.ends_with(b"/..");
    if is_folder {
        text.push(b'/');
    }
    while replace(&mut text, b"//") {}
    while replace(&mut text, b"/./") {}
    while let Some(at) = text.windows(4).position(|window| window == b"/../") {
        let parent = text[..at].iter().rposition(|&byte| byte == b'/');
        text.drain(parent.ok_or(BadPath::AboveRoot)?..at + 3);
    }
    let spelled = text.iter().flat_map(|&byte| match byte {
        b'%' | b'?' | b'#' | b' ' | 0x7f | 0..0x20 => format!("%{byte:02X}").into_bytes(),
        _ => vec![byte],
    });
    Ok(spelled.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn equal_to_the_reference(path in path()) {
        let read = Path::read(&path).map(|path| path.as_bytes().to_vec());
        prop_assert_eq!(read, reference(&path));
    }

    #[test]
    fn read_again_it_is_the_same(path in path()) {
        if let Ok(read) = Path::read(&path) {
            prop_assert_eq!(Path::read(read.as_bytes()), Ok(read.clone()));
            // Decoding keeps different paths different, as the normalised spelling does.
            let encoded: String = read.decoded().iter().map(|byte| match byte {
                b'/' => "/".to_owned(),
                byte => format!("%{byte:02x}"),
            }).collect();
            prop_assert_eq!(Path::read(encoded.as_bytes()), Ok(read));
        }
    }

    /// If a path begins with a folder, its normalised spelling begins with that of the folder.
    #[test]
    fn a_prefix_that_ends_a_segment_is_one_of_what_follows(path in path(), rest in "[ab%]{0,4}") {
        let folder = [&path[..], b"/"].concat();
        let whole = [&folder[..], rest.replace('%', "%41").as_bytes()].concat();
        if let Ok(prefix) = Path::read_prefix(&folder) {
            let whole = Path::read(&whole).unwrap();
            prop_assert!(whole.as_bytes().starts_with(prefix.as_bytes()));
        }
    }
}
