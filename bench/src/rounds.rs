//! Rounds of one load, in each of which every competitor has its turn, one after the other, so that other load on the
//! machine meets all of them. Ratios are taken within a round.

use anyhow::Result;

use crate::competitor::{Competitor, Each};
use crate::cpu::CpuTime;
use crate::lab::BenchLab;
use crate::statistics::Spread;
use crate::wrk::{self, Measured, Target, Work};

/// The results of one competitor's turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    measured: Measured,
    /// The processor time of the whole machine, in microseconds a request.
    cpu: f64,
}

/// The results of all rounds of one load.
#[derive(Clone, Debug)]
pub(crate) struct Rounds(Vec<Each<Turn>>);

impl Rounds {
    /// Measures so many rounds of this work, after one that is not counted.
    pub fn measure(
        lab: &BenchLab,
        count: u32,
        target: fn(Competitor) -> Target,
        work: Work,
    ) -> Result<Rounds> {
        let each = || Each::try_new(|competitor| turn(lab, target(competitor), work));
        each()?; // warms up
        let rounds = (1..=count).map(|round| {
            let each = each()?;
            let rates = each.map(|turn| turn.measured.rate());
            eprintln!(
                "  {round}: baton {:.0}, direct {:.0}, HAProxy {:.0} requests/s",
                rates.baton, rates.direct, rates.haproxy
            );
            Ok(each)
        });
        rounds.collect::<Result<_>>().map(Rounds)
    }

    /// The rate, in requests a second.
    pub fn rate(&self, competitor: Competitor) -> Spread {
        Spread::of(self.of(competitor).map(|turn| turn.measured.rate()))
    }

    /// The rate of baton as a multiple of another's.
    pub fn baton_to(&self, other: Competitor) -> Spread {
        let rates = self.of(Competitor::Baton).zip(self.of(other));
        Spread::of(rates.map(|(baton, other)| baton.measured.rate() / other.measured.rate()))
    }

    /// The processor time a request, in microseconds.
    pub fn cpu(&self, competitor: Competitor) -> Spread {
        Spread::of(self.of(competitor).map(|turn| turn.cpu))
    }

    /// The processor time that baton takes more than direct access, in microseconds a request.
    pub fn cpu_beyond_direct(&self) -> Spread {
        let times = self.of(Competitor::Baton).zip(self.of(Competitor::Direct));
        Spread::of(times.map(|(baton, direct)| baton.cpu - direct.cpu))
    }

    /// All errors that wrk saw.
    pub fn errors(&self, competitor: Competitor) -> u64 {
        let turns = self.of(competitor);
        turns.map(|turn| turn.measured.errors()).sum()
    }

    fn of(&self, competitor: Competitor) -> impl Iterator<Item = &Turn> {
        self.0.iter().map(move |round| round.of(competitor))
    }
}

fn turn(lab: &BenchLab, target: Target, work: Work) -> Result<Turn> {
    let before = CpuTime::now()?;
    let measured = wrk::run(lab, target, work)?;
    let cpu = CpuTime::now()?.micros_since(before) / measured.requests as f64;
    Ok(Turn { measured, cpu })
}
