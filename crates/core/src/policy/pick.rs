//! Takes one of a pool's choices in user space, as the programs do in the kernel.

use std::hash::Hasher as _;

use baton_abi::{POLICY_CLIENT, POLICY_PATH, POLICY_TURN};
use baton_wire::Address;
use siphasher::sip::SipHasher24;

/// The choices of one pool, in user space.
#[derive(Clone, Debug)]
pub struct Choices<T> {
    policy: u32,
    choices: Vec<T>,
    rotation: Rotation,
}

impl<T> Default for Choices<T> {
    fn default() -> Self {
        Self {
            policy: POLICY_TURN,
            choices: Vec::new(),
            rotation: Rotation::default(),
        }
    }
}

impl<T: Copy + PartialEq> Choices<T> {
    /// Sets the choices from now on, to be read as `policy` (`enum policy`) says. Servers that take turns go on with theirs.
    pub fn set(&mut self, policy: u32, choices: &[T]) {
        self.policy = policy;
        if self.choices != choices {
            self.choices = choices.to_vec();
        }
    }

    /// Whether this is one of the choices.
    pub fn contains(&self, choice: &T) -> bool {
        self.choices.contains(choice)
    }

    /// Takes one of the choices for a request with this path, from this client. `None` if there are none.
    pub fn pick(&mut self, client: Address, path: &[u8]) -> Option<T> {
        self.rotation.pick(self.policy, &self.choices, client, path)
    }
}

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
