//! A client that sends again what was not answered is read to its end.

use fastrand::Rng;

use crate::world::{Checked, World};

/// So often each part may be sent again.
fn rounds(requests: usize) -> usize {
    6 * requests + 12
}

/// So often user space tries again meanwhile.
const TRIES: usize = 4;

/// Everybody recovers from what has happened.
pub fn recover(world: &mut World<'_>) -> Checked {
    let mut rng = Rng::with_seed(world.trial.recovery);
    let all = world.stream.len();
    for _ in 0..rounds(world.trial.requests.len()) {
        world.settle()?;
        for _ in 0..TRIES {
            world.try_again()?;
            world.settle()?;
        }
        if world.is_refused || world.served as u32 == all {
            return Ok(());
        }
        world.pass_time(rng.u16(200..400))?;
        // A server says again what was not acknowledged, and its client that it has it.
        if world.is_unheard() {
            world.acknowledge()?;
        }
        let mut at = world.acknowledged;
        while at < all {
            let bytes = next_part(world, &mut rng, at);
            let packet = world.packet(at, bytes);
            world.pass_on(packet)?;
            at += bytes;
        }
    }
    if !world.trial.mix.has_agent && !world.is_anywhere() {
        return Ok(());
    }
    Err(format!(
        "a client waits for ever: {} of {all} bytes were read",
        world.served
    ))
}

/// As the client's TCP cuts it: by the path's size, or where its program has written.
fn next_part(world: &World<'_>, rng: &mut Rng, at: u32) -> u32 {
    let requests = &world.stream.requests;
    let end = requests
        .iter()
        .map(|one| one.end)
        .find(|&end| end > at)
        .unwrap_or(at + 1);
    if world.trial.mix.cuts_heads && rng.bool() {
        return 1448.min(world.stream.len() - at);
    }
    end - at
}
