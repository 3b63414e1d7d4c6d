//! What dispatchers on other nodes have answered about requests at a data server's door
//! (`bpf/data_server/door/dispatcher.h`).

use std::time::Duration;

use baton_abi::{Answer, AnswerKey, NO_DATA_SERVER, Pool};
use libbpf_rs::MapHandle;

use crate::{
    DataServer, Error,
    clock::coarse_after,
    maps::{again, element, update},
};

/// The maps of the task that asks dispatchers. The task must call [`Answers::give_sign`] again and again, or the
/// program asks it for nothing.
pub struct Answers {
    answers: MapHandle,
    resting: MapHandle,
    asking: MapHandle,
    pools: MapHandle,
}

impl DataServer {
    /// A second handle to the maps, for the task that asks dispatchers.
    pub fn answers(&self) -> Result<Answers, Error> {
        Ok(Answers {
            answers: again("answers", &self.routing.answers)?,
            resting: again("resting", &self.routing.resting)?,
            asking: again("asking", &self.asking)?,
            pools: again("pools", &self.routing.pools)?,
        })
    }
}

impl Answers {
    /// Tells the program that a task asks dispatchers, from now on for this long.
    pub fn give_sign(&self, time: Duration) -> Result<(), Error> {
        update("asking", &self.asking, &0u32, &coarse_after(time))
    }

    /// Tells the program that from now on no task asks dispatchers.
    pub fn withdraw(&self) -> Result<(), Error> {
        update("asking", &self.asking, &0u32, &0u64)
    }

    /// The pool at an index; all zero if there is none.
    pub fn pool(&self, index: u16) -> Result<Pool, Error> {
        element("pools", &self.pools, index.into())
    }

    /// Makes the program use this answer for this long. With `None` there is no answer, and the program chooses by
    /// itself.
    pub fn remember(
        &self,
        key: &AnswerKey,
        owner: Option<u16>,
        lifetime: Duration,
    ) -> Result<(), Error> {
        let answer = Answer {
            until: coarse_after(lifetime),
            // A number that C keeps in 16 bits.
            owner: owner.unwrap_or(NO_DATA_SERVER as u16),
            ..Answer::default()
        };
        update("answers", &self.answers, key, &answer)
    }

    /// Makes the program choose by itself for this long, and ask nothing about this service.
    pub fn rest(&self, service: u16, time: Duration) -> Result<(), Error> {
        let until = coarse_after(time);
        update("resting", &self.resting, &u32::from(service), &until)
    }
}
