//! If a client sends again what was not acknowledged, the servers read all that it sends.

use fastrand::Rng;

use crate::world::{Checked, World};

/// How many times each part may be sent again.
fn rounds(requests: usize) -> usize {
    6 * requests + 12
}

/// How many times user space tries again before each part is sent again.
const TRIES: usize = 4;

/// Lets everybody recover from what has happened. Fails if the servers do not read all that the client sends.
pub fn recover(world: &mut World<'_>) -> Checked {
    let mut rng = Rng::with_seed(world.trial.recovery);
    let all = world.stream.len();
    world.listen_again()?;
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
        // The server's TCP sends again what was not acknowledged, and the client acknowledges it.
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

/// The length of the next segment, as the client's TCP cuts it: by the path's MTU, or where its program has written.
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
