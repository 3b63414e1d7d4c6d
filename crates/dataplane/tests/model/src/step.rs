//! What happens in a sequence, one thing after the other. Numbers in a step are taken by what there is to choose from when
//! it comes to that, so that a sequence from which steps are left out is a sequence too.

use fastrand::Rng;

use crate::script::Script;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The client sends the rest of the request that it is at.
    Request,
    /// The next few bytes.
    Piece,
    /// The rest of the request, and more in the same packet.
    Across,
    /// Something that it has sent before, cut otherwise.
    Again,
    /// A packet that it has sent before, as it was; or the network repeats it.
    Old,
    /// Something that is not its turn yet.
    Ahead,
    /// An acknowledgement and nothing else.
    Acknowledge,
    /// The end of what it has to say.
    End,
    /// Something that it has sent before, with another path in it.
    Altered,
    /// A data server answers, as far as it goes in one.
    Answer,
    /// A data server begins to answer, and the rest follows later.
    Begin,
    /// A data server answers in a way whose end nobody can tell.
    AnswerForever,
    /// The client has got some of the responses.
    Hear,
    /// User space sends a head again of which its client was told that some had come.
    Repeat,
    /// A message inside the cluster comes to where it goes.
    Arrive,
    /// It never does.
    Lose,
    /// It comes twice.
    Double,
    /// The connection server loses its entry.
    Forget,
    /// Somebody sends a packet in the client's name who knows its addresses and ports only.
    Forge,
    /// The same by somebody who happens to be near.
    ForgeNear,
    /// Two things at the same time, each on a processor of its own.
    Together,
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub what: What,
    pub connection: u8,
    pub a: u16,
    pub b: u16,
    /// Whether everything that is on its way inside the cluster arrives after it.
    pub settles: bool,
}

/// A sequence.
#[derive(Clone, Debug)]
pub struct Trial {
    pub scripts: Vec<Script>,
    pub steps: Vec<Step>,
    pub habits: Habits,
}

/// What holds for a whole sequence.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Some requests offer another protocol.
    pub asks_oddly: bool,
    /// Clients send requests before the ones before are answered.
    pub pipelines: bool,
    /// User space reads what the connection server shows it.
    pub is_read: bool,
    /// Some servers answer before they have read the body.
    pub answers_early: bool,
    /// In the end everybody gets what they have asked for.
    pub recovers: bool,
    /// Two processors run the program, so that not every run of it ends alike.
    pub races: bool,
}

/// What sequences are made of: how often each thing happens.
pub struct Mix {
    pub weights: &'static [(What, u16)],
    pub habits: Habits,
}

/// Clients that keep to the rules, on a network that loses, repeats and reorders.
pub const HONEST: Mix = Mix {
    weights: &[
        (What::Request, 30),
        (What::Piece, 8),
        (What::Across, 4),
        (What::Again, 8),
        (What::Old, 8),
        (What::Ahead, 3),
        (What::Acknowledge, 4),
        (What::End, 1),
        (What::Answer, 26),
        (What::Begin, 3),
        (What::Hear, 22),
        (What::Repeat, 2),
        (What::Arrive, 10),
        (What::Lose, 2),
        (What::Double, 2),
        (What::Forge, 6),
    ],
    habits: Habits {
        asks_oddly: false,
        pipelines: true,
        is_read: true,
        answers_early: true,
        recovers: false,
        races: false,
    },
};

/// The same where the connection server loses entries, and responses cannot be followed.
pub const FORGETFUL: Mix = Mix {
    weights: &[
        (What::Request, 30),
        (What::Piece, 6),
        (What::Across, 4),
        (What::Again, 8),
        (What::Old, 8),
        (What::Ahead, 3),
        (What::Acknowledge, 4),
        (What::End, 1),
        (What::Answer, 26),
        (What::Begin, 3),
        (What::AnswerForever, 1),
        (What::Hear, 22),
        (What::Repeat, 2),
        (What::Arrive, 8),
        (What::Lose, 2),
        (What::Double, 2),
        (What::Forget, 4),
        (What::Forge, 6),
    ],
    habits: Habits {
        asks_oddly: true,
        pipelines: false,
        is_read: true,
        answers_early: false,
        recovers: false,
        races: false,
    },
};

/// Honest clients, whose packets meet what else comes.
pub const TWO_PROCESSORS: Mix = Mix {
    weights: &[
        (What::Request, 24),
        (What::Piece, 6),
        (What::Across, 3),
        (What::Again, 4),
        (What::Old, 4),
        (What::Acknowledge, 2),
        (What::Answer, 24),
        (What::Begin, 3),
        (What::Hear, 22),
        (What::Repeat, 2),
        (What::Arrive, 8),
        (What::Lose, 1),
        (What::Double, 2),
        (What::Together, 40),
    ],
    habits: Habits {
        asks_oddly: false,
        pipelines: true,
        is_read: true,
        answers_early: true,
        recovers: true,
        races: true,
    },
};

/// Clients that send other bytes than before, and forgers who are near.
pub const HOSTILE: Mix = Mix {
    weights: &[
        (What::Request, 26),
        (What::Piece, 6),
        (What::Across, 4),
        (What::Again, 8),
        (What::Old, 8),
        (What::Ahead, 3),
        (What::Altered, 20),
        (What::Answer, 22),
        (What::Begin, 2),
        (What::Hear, 18),
        (What::Repeat, 2),
        (What::Arrive, 8),
        (What::Lose, 4),
        (What::Double, 2),
        (What::ForgeNear, 4),
    ],
    habits: Habits {
        asks_oddly: false,
        pipelines: true,
        is_read: true,
        answers_early: true,
        recovers: false,
        races: false,
    },
};

impl Trial {
    pub fn random(random: &mut Rng, mix: &Mix) -> Self {
        let connections = if random.u8(..4) == 0 { 2 } else { 1 };
        let scripts = (0..connections)
            .map(|_| Script::random(random, mix.habits.asks_oddly))
            .collect();
        let total: u16 = mix.weights.iter().map(|(_, weight)| weight).sum();
        // Some networks are in order.
        let settling = [100, 90, 60][random.usize(..3)];
        let steps = (0..random.usize(6..=24) * usize::from(connections)).map(|_| {
            let mut at = random.u16(..total);
            let chosen = mix.weights.iter().find(|(_, weight)| {
                let here = at < *weight;
                at = at.wrapping_sub(*weight);
                here
            });
            Step {
                what: chosen.expect("a number below the sum").0,
                connection: random.u8(..connections),
                a: random.u16(..),
                b: random.u16(..),
                settles: random.u8(..100) < settling,
            }
        });
        Self {
            steps: steps.collect(),
            habits: mix.habits,
            scripts,
        }
    }
}
