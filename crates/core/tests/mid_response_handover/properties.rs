//! What holds whatever is lost, whoever dies, and whenever the drain is undone.

use proptest::prelude::*;

use super::world::{Place, World};
use super::{OWNER, at};

#[derive(Clone, Copy, Debug)]
enum Turn {
    Nothing,
    Dies(u16),
    Undone,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        Just(Turn::Nothing),
        (0u16..4).prop_map(Turn::Dies),
        Just(Turn::Undone)
    ]
}

proptest! {
    /// The world itself checks at each step that the data server that an entry names has the connection. This checks
    /// that every move ends, and that what is lost is resumed.
    #[test]
    fn each_comes_to_one_end(
        connections in 1u32..160,
        same in prop::collection::vec(prop::bool::weighted(0.7), 3),
        lost in prop::collection::vec(prop::bool::weighted(0.25), 101),
        patience in 0u32..6,
        turn in turn(),
        when in 0u64..1500,
    ) {
        let same: Vec<bool> = std::iter::once(true).chain(same).collect();
        let mut world = World::new(connections, same, lost, patience);
        let mut ms = 0;
        while world.moves.open() > 0 {
            prop_assert!(ms < 600_000, "no end: {} are open", world.moves.open());
            if ms == when / 5 * 5 {
                match turn {
                    Turn::Dies(server) => world.die(ms, server),
                    Turn::Undone => world.moves.handle_undo(at(ms), OWNER),
                    Turn::Nothing => {}
                }
            }
            world.step(ms);
            ms += 5;
        }
        world.check();
        for (key, place) in &world.places {
            // A connection that is lost is resumed, and not forgotten.
            if *place == Place::Lost {
                prop_assert_eq!(world.ended.get(key), Some(&"orphan"));
            }
        }
    }

    /// If no data server dies, no message is lost and all data servers have the same response, all connections move.
    #[test]
    fn without_loss_all_move(connections in 1u32..160, patience in 0u32..6) {
        let mut world = World::new(connections, vec![true; 3], vec![false], patience);
        let mut ms = 0;
        while world.moves.open() > 0 {
            prop_assert!(ms < 60_000);
            world.step(ms);
            ms += 5;
        }
        prop_assert!(world.ended.values().all(|how| *how == "begun"), "{:?}", world.ended);
        prop_assert!(world.places.values().all(|place| *place != Place::At(OWNER)));
    }
}
