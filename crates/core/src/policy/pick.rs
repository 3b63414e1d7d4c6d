//! Takes one of a pool's choices in user space, as the programs do in the kernel.

use std::hash::Hasher as _;

use baton_abi::{POLICY_CLIENT, POLICY_PATH};
use baton_wire::Address;
use siphasher::sip::SipHasher24;

/// The place of the last choice of a pool whose servers take turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotation(usize);

impl Rotation {
    /// Takes one of `choices` for a client's request, read as `policy` (`enum policy`) says: by a hash of the
    /// client's address, by a hash of the path, or the next one in turn. `None` if there are no choices.
    pub fn pick<T: Copy>(
        &mut self,
        policy: u32,
        choices: &[T],
        client: Address,
        path: &[u8],
    ) -> Option<T> {
        let place = match policy {
            POLICY_CLIENT => hash(&client.octets()),
            POLICY_PATH => hash(path),
            _ => {
                self.0 = self.0.wrapping_add(1);
                self.0
            }
        };
        choices.get(place.checked_rem(choices.len())?).copied()
    }
}

fn hash(bytes: &[u8]) -> usize {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    hasher.finish() as usize
}
