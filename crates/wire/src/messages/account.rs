//! ACCOUNT: tells the node that gave an order how the order is getting on.

use baton_abi::{LCCP_MAX_BODY, LccpAccount};
use zerocopy::{FromBytes as _, IntoBytes as _};

/// The report of the node that was given an order. It is sent whenever it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    number: u64,
    text: String,
}

impl Account {
    /// The longest text, bytes: what fits `LCCP_MAX_BODY`.
    pub const MAX_TEXT: usize = LCCP_MAX_BODY as usize - size_of::<LccpAccount>();

    /// A report on the order with this number; `None` if the text is longer than [`Account::MAX_TEXT`].
    pub fn new(number: u64, text: String) -> Option<Self> {
        (text.len() <= Self::MAX_TEXT).then_some(Self { number, text })
    }

    /// The number of the order.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The answer that the node's control socket would have given.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        let head = LccpAccount {
            be_number: self.number.to_be(),
            // At most MAX_TEXT, 1008.
            be_text_bytes: (self.text.len() as u16).to_be(),
            ..LccpAccount::default()
        };
        [head.as_bytes(), self.text.as_bytes()].concat()
    }

    /// Reads a body. Returns `None` if it is shorter than it says, or if its text is not UTF-8. Bytes behind the text
    /// are ignored.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (head, rest) = LccpAccount::read_from_prefix(body).ok()?;
        let text = rest.get(..usize::from(u16::from_be(head.be_text_bytes)))?;
        Self::new(
            u64::from_be(head.be_number),
            str::from_utf8(text).ok()?.to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_text_fits_and_one_byte_more_does_not() {
        let text = |bytes| "x".repeat(bytes);
        let longest = Account::new(1, text(Account::MAX_TEXT)).unwrap();
        assert_eq!(longest.body().len(), LCCP_MAX_BODY as usize);
        assert_eq!(Account::read(&longest.body()), Some(longest));
        assert_eq!(Account::new(1, text(Account::MAX_TEXT + 1)), None);
    }

    #[test]
    fn what_cannot_be_is_no_account() {
        let body = Account::new(1, "é".into()).unwrap().body();
        assert_eq!(Account::read(&body[..body.len() - 1]), None, "cut short");
        let mut half = body;
        half.truncate(size_of::<LccpAccount>() + 1);
        half[9] = 1;
        assert_eq!(Account::read(&half), None, "half a letter");
    }
}
