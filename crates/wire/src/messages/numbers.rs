//! RESEND's body: the numbers of messages that did not come.

use baton_abi::LCCP_MAX_BODY;

/// A list of message numbers that fits one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Vec<u16>);

impl Numbers {
    /// How many numbers one message holds: what fits `LCCP_MAX_BODY`.
    pub const MAX: usize = LCCP_MAX_BODY as usize / size_of::<u16>();

    /// As many lists as `numbers` need; no list if there are none.
    pub fn lists(numbers: &[u16]) -> Vec<Self> {
        (numbers.chunks(Self::MAX))
            .map(|some| Self(some.to_vec()))
            .collect()
    }

    /// The numbers, in the order in which they were asked for.
    pub fn get(&self) -> &[u16] {
        &self.0
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        self.0.iter().flat_map(|n| n.to_be_bytes()).collect()
    }

    /// Reads a body. Returns `None` if it is empty or ends within a number. It need not check for too many numbers:
    /// such a body does not fit a message.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let (numbers, rest) = body.as_chunks();
        let fits = !numbers.is_empty() && numbers.len() <= Self::MAX && rest.is_empty();
        fits.then(|| Self(numbers.iter().map(|n| u16::from_be_bytes(*n)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_hold_every_number_and_fit() {
        for count in [0, 1, Numbers::MAX, Numbers::MAX + 1] {
            let numbers: Vec<u16> = (0..count).map(|n| n as u16).collect();
            let lists = Numbers::lists(&numbers);
            let together: Vec<u16> = lists.iter().flat_map(Numbers::get).copied().collect();
            assert_eq!(together, numbers);
            for list in lists {
                assert_eq!(Numbers::read(&list.write()), Some(list));
            }
        }
    }

    #[test]
    fn what_is_no_list_is_none() {
        assert_eq!(Numbers::read(&[]), None);
        assert_eq!(Numbers::read(&[0, 1, 2]), None);
        assert_eq!(Numbers::read(&vec![0; 2 * Numbers::MAX + 2]), None);
    }
}
