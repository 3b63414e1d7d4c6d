//! Questions to other nodes, each of which has a stream of its own, in both directions.

use std::io;
use std::time::Duration;

use quinn::{Connection, VarInt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::frame::LONGEST;

/// A question that another node has asked.
#[derive(Debug)]
pub struct Question {
    /// The node that asks.
    pub from: std::net::Ipv4Addr,
    /// What it asks.
    pub text: Vec<u8>,
    /// Takes the answer. If it is dropped, the question fails.
    pub answer: oneshot::Sender<Vec<u8>>,
}

/// A question to another node, on its way to the task that has the connection there.
#[derive(Debug)]
pub(crate) struct Asked {
    pub text: Vec<u8>,
    pub answer: oneshot::Sender<io::Result<Vec<u8>>>,
}

/// The handle with which any task asks one other node.
#[derive(Clone, Debug)]
pub struct Ask(pub(crate) mpsc::Sender<Asked>);

impl Ask {
    /// Asks the node, and returns its answer.
    ///
    /// # Errors
    /// The node cannot be reached, does not answer within `patience`, or does not take such questions.
    pub async fn ask(&self, text: Vec<u8>, patience: Duration) -> io::Result<Vec<u8>> {
        let (answer, answered) = oneshot::channel();
        let ended = || {
            io::Error::new(
                io::ErrorKind::NotConnected,
                "the node is no longer reached by streams",
            )
        };
        let asking = async {
            let sent = self.0.send(Asked { text, answer }).await;
            sent.map_err(|_| ended())?;
            answered.await.map_err(|_| ended())?
        };
        timeout(patience, asking).await?
    }
}

impl Asked {
    /// Asks by this connection, unless who has asked gives up before.
    pub async fn ask(self, connection: Connection) {
        let Self { text, mut answer } = self;
        let opened = tokio::select! {
            biased;
            () = answer.closed() => return,
            opened = connection.open_bi() => opened,
        };
        let (mut to, mut from) = match opened {
            Ok(both) => both,
            // Who has asked may have given up.
            Err(error) => return drop(answer.send(Err(error.into()))),
        };
        let asking = async {
            to.write_all(&text).await?;
            to.finish().map_err(io::Error::other)?;
            from.read_to_end(LONGEST).await.map_err(io::Error::other)
        };
        let answered = tokio::select! {
            biased;
            () = answer.closed() => None,
            answered = asking => Some(answered),
        };
        match answered {
            Some(answered) => drop(answer.send(answered)),
            // The other node must not take a part of the question for all of it, nor think about it any longer.
            None => {
                let _ = to.reset(GIVEN_UP);
                let _ = from.stop(GIVEN_UP);
            }
        }
    }
}

/// Says that nobody wants the answer any more.
const GIVEN_UP: VarInt = VarInt::from_u32(0);

/// Takes the questions of a node that is at the other end of this connection, until the connection ends.
pub(crate) async fn take(
    connection: &Connection,
    from: std::net::Ipv4Addr,
    questions: &mpsc::Sender<Question>,
) -> io::Result<()> {
    loop {
        let (mut to, mut asked) = connection.accept_bi().await?;
        let questions = questions.clone();
        tokio::spawn(async move {
            let text = asked.read_to_end(LONGEST).await.map_err(io::Error::other)?;
            let (answer, answered) = oneshot::channel();
            let question = Question { from, text, answer };
            questions.send(question).await.map_err(io::Error::other)?;
            let answer = tokio::select! {
                answer = answered => answer.ok(),
                _ = to.stopped() => None,
            };
            match answer {
                Some(answer) => {
                    to.write_all(&answer).await?;
                    to.finish().map_err(io::Error::other)
                }
                None => to.reset(GIVEN_UP).map_err(io::Error::other),
            }
        });
    }
}
