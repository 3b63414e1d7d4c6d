//! Has connections of the TLS agent move to other data servers: their sessions go by streams from daemon to daemon, and
//! then the program hands their sockets over.
//!
//! ```text
//!  agent --Move--> daemon ==MOVE: the session==> daemon --Take--> agent        (a question by a stream)
//!                  daemon <==yes================ daemon <--Taken-- agent
//!                  program --ADOPT, with an empty ACK--> program --> the agent's listener: the session goes on
//!  agent <--RST--  program
//!                  daemon <==yes, it has come=== daemon <--Arrived-- agent
//! ```
//!
//! Until it has come, the program is asked again to send ADOPT, which may be lost. If the other side cannot take the
//! session, or the program finds that something is under way, the connection stays.

use std::{
    collections::HashMap,
    io,
    pin::pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use baton_abi::TcbKey;
use baton_agent::{Ends, terminate::messages::Moving};
use baton_dataplane::Reading;
use baton_streams::{Answers, Ask};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tracing::debug;
use zeroize::Zeroizing;

use crate::{data_server::empty_ack, locked::locked};

/// What a question of another daemon is about: its first byte.
const MOVE: u8 = 3;

/// An answer that says yes, and one that says no.
pub const YES: u8 = 1;
pub const NO: u8 = 0;

/// The other side says within this time whether it takes a session.
const PATIENCE: Duration = Duration::from_secs(2);
/// A connection that has not come to the other side within this time is lost.
const COMES: Duration = Duration::from_secs(8);
/// A connection that could not leave within this time stays.
const LEAVES: Duration = Duration::from_millis(100);
/// The first pause before the program is asked again; each pause is twice as long as the one before, up to a limit.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Moves connections away from this data server.
pub struct Mover {
    pub reading: Reading,
    pub mac: [u8; 6],
    /// The moves under way.
    pub moves: Moves,
}

/// The moves under way, by connection: whether the program may still be asked.
#[derive(Default)]
pub struct Moves(Mutex<HashMap<Ends, Arc<Mutex<bool>>>>);

impl Moves {
    /// Notes a move. One of the same connection that is still under way ends.
    fn begin(&self, ends: Ends) -> Arc<Mutex<bool>> {
        self.end(ends);
        let may_ask = Arc::new(Mutex::new(true));
        locked(&self.0).insert(ends, Arc::clone(&may_ask));
        may_ask
    }

    /// Ends the move of a connection. It must be called before the connection comes back: if the program were asked
    /// again after that, the connection would leave once more, without its session.
    pub fn end(&self, ends: Ends) {
        let before = locked(&self.0).remove(&ends);
        if let Some(may_ask) = before {
            *locked(&may_ask) = false;
        }
    }

    /// Forgets a move that is over.
    fn forget(&self, ends: Ends, may_ask: &Arc<Mutex<bool>>) {
        let mut moves = locked(&self.0);
        if moves
            .get(&ends)
            .is_some_and(|one| Arc::ptr_eq(one, may_ask))
        {
            moves.remove(&ends);
        }
    }
}

impl Mover {
    /// Has a connection move to the data server in this slot, which `ask` asks. `left` says when it has left its socket
    /// here. Returns whether it has left.
    pub async fn move_to(
        &self,
        slot: u16,
        ask: &Ask,
        moving: &Moving,
        left: &mut watch::Receiver<bool>,
    ) -> bool {
        let flow = TcbKey::of(moving.ends.client, moving.ends.cluster);
        let Some(ack) = empty_ack::ack(&flow, (0, 0), self.mac) else {
            return false;
        };
        let mut answers = match is_taken(ask, moving).await {
            Ok(answers) => answers,
            Err(error) => {
                debug!(slot, %error, "a data server does not take a TLS session");
                return false;
            }
        };
        let may_ask = self.moves.begin(moving.ends);
        let mut coming = pin!(answers.next());
        let (begin, mut pause, mut is_answered) = (Instant::now(), FIRST_PAUSE, false);
        let has_left = loop {
            if !self.ask_program(&may_ask, slot, &ack) {
                break true;
            }
            tokio::select! {
                come = &mut coming, if !is_answered => match come {
                    Ok(YES) => break true,
                    // Nobody expects it there any longer, or that is not known.
                    _ => is_answered = true,
                },
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
            if !*left.borrow() && begin.elapsed() > LEAVES {
                break false;
            }
            if begin.elapsed() > COMES {
                break true;
            }
        };
        self.moves.forget(moving.ends, &may_ask);
        has_left
    }

    /// Asks the program to move the connection, if the move is not over. False if it is.
    fn ask_program(&self, may_ask: &Mutex<bool>, slot: u16, ack: &[u8]) -> bool {
        let may_ask = locked(may_ask);
        if *may_ask && let Err(error) = self.reading.move_to(slot, ack) {
            debug!(%error, "cannot have the program move a connection");
        }
        *may_ask
    }
}

/// Asks a data server to take a session. Returns what will say whether the connection has come there.
async fn is_taken(ask: &Ask, moving: &Moving) -> io::Result<Answers> {
    let question = Zeroizing::new([&[MOVE], &moving.to_bytes()[..]].concat());
    let asking = async {
        let mut answers = ask.ask(&question).await?;
        match answers.next().await? {
            YES => Ok(answers),
            _ => Err(io::Error::other("its agent says no")),
        }
    };
    timeout(PATIENCE, asking).await?
}

/// The session that another daemon asks the agent here to take; `None` if it asks for something else.
pub fn read_question(text: &[u8]) -> Option<Moving> {
    match text.split_first()? {
        (&MOVE, moving) => Moving::from_bytes(moving),
        _ => None,
    }
}
