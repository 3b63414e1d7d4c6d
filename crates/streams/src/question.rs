//! Questions to other nodes, each of which has a stream of its own, in both directions.

use std::io;
use std::time::Duration;

use quinn::Connection;
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
    /// Asks by this connection.
    pub async fn ask(self, connection: Connection) {
        let asking = async {
            let (mut to, mut from) = connection.open_bi().await?;
            to.write_all(&self.text).await?;
            to.finish().map_err(io::Error::other)?;
            from.read_to_end(LONGEST).await.map_err(io::Error::other)
        };
        // Who has asked may have lost patience.
        let _ = self.answer.send(asking.await);
    }
}

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
            // Without an answer the stream is reset when it is dropped.
            let Ok(answer) = answered.await else {
                let _ = to.reset(quinn::VarInt::from_u32(0));
                return Ok(());
            };
            to.write_all(&answer).await?;
            to.finish().map_err(io::Error::other)
        });
    }
}
