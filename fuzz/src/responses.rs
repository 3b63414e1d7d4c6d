//! Fuzzes the head of a response, as a server writes it: what is read from its beginning must agree with what is read
//! from all of it, or one response would be taken for another. The first byte says how much of it the beginning is.

use baton_agent::resume::{Head, glimpse};

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else {
        return;
    };
    let seen = glimpse(&bytes[..bytes.len().min(usize::from(cut) * 4)]);
    let Ok(Some(head)) = Head::read(b"GET / HTTP/1.1\r\n", bytes) else {
        return;
    };
    let whole = glimpse(bytes).expect("a head");
    assert_eq!(whole.digest, head.digest);
    for seen in seen.into_iter().chain([whole]) {
        let length = seen.length.map(|length| length.get().into());
        assert_eq!(head.continues(0, Some(seen.digest), length), Ok(()));
    }
}
