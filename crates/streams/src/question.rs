//! Questions and channels to other nodes, each of which has a stream of its own, in both directions.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use quinn::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::channel::{Channel, Opened};
use crate::frame::LONGEST;

/// The first byte of a stream: what follows.
const QUESTION: u8 = 0;
const CHANNEL: u8 = 1;

/// A question that another node has asked.
#[derive(Debug)]
pub struct Question {
    /// The node that asks.
    pub from: Ipv4Addr,
    /// What it asks, which may be secret.
    pub text: Zeroizing<Vec<u8>>,
    /// Takes the answer. If it is dropped, the question fails.
    pub answer: oneshot::Sender<Vec<u8>>,
}

/// The handle with which any task reaches one other node: the connection there, while there is one.
#[derive(Clone, Debug)]
pub struct Ask(pub(crate) watch::Receiver<Option<Connection>>);

impl Ask {
    /// Asks the node, and returns its answer.
    ///
    /// # Errors
    /// The node cannot be reached, does not answer within `patience`, or does not take such questions.
    pub async fn ask(&self, text: &[u8], patience: Duration) -> io::Result<Vec<u8>> {
        let asking = async {
            let mut channel = self.channel().await?;
            channel.write_u8(QUESTION).await?;
            channel.write_all(text).await?;
            channel.shutdown().await?;
            channel.read_to_end(LONGEST).await
        };
        timeout(patience, asking).await?
    }

    /// Opens a channel to the node, for what `text` says, which has at most 65,535 bytes.
    ///
    /// # Errors
    /// The node cannot be reached within `patience`.
    pub async fn open(&self, text: &[u8], patience: Duration) -> io::Result<Channel> {
        let length = u16::try_from(text.len()).map_err(io::Error::other)?;
        let opening = async {
            let mut channel = self.channel().await?;
            channel.write_u8(CHANNEL).await?;
            channel.write_u16(length).await?;
            channel.write_all(text).await?;
            Ok(channel)
        };
        timeout(patience, opening).await?
    }

    async fn channel(&self) -> io::Result<Channel> {
        let mut reached = self.0.clone();
        let connection = reached.wait_for(Option::is_some).await;
        let connection = connection.ok().and_then(|one| one.clone());
        match connection {
            Some(connection) => Channel::open(&connection).await,
            None => Err(io::Error::new(
                io::ErrorKind::NotConnected,
                "the node is no longer reached by streams",
            )),
        }
    }
}

/// Takes the questions and channels of a node that is at the other end of this connection, until the connection ends.
pub(crate) async fn take(
    connection: &Connection,
    from: Ipv4Addr,
    questions: &mpsc::Sender<Question>,
    channels: &mpsc::Sender<Opened>,
) -> io::Result<()> {
    loop {
        let mut channel = Channel::accept(connection).await?;
        let (questions, channels) = (questions.clone(), channels.clone());
        tokio::spawn(async move {
            match channel.read_u8().await? {
                QUESTION => answer(channel, from, questions).await,
                CHANNEL => {
                    let mut text = vec![0; channel.read_u16().await?.into()];
                    channel.read_exact(&mut text).await?;
                    let opened = Opened {
                        from,
                        text,
                        channel,
                    };
                    channels.send(opened).await.map_err(io::Error::other)
                }
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        });
    }
}

/// Has a question answered. Without an answer the channel is dropped, so the question fails.
async fn answer(
    mut channel: Channel,
    from: Ipv4Addr,
    questions: mpsc::Sender<Question>,
) -> io::Result<()> {
    let text = Zeroizing::new(channel.read_to_end(LONGEST).await?);
    let (answer, answered) = oneshot::channel();
    let question = Question { from, text, answer };
    questions.send(question).await.map_err(io::Error::other)?;
    let answer = tokio::select! {
        answer = answered => answer.ok(),
        () = channel.is_unwanted() => None,
    };
    let Some(answer) = answer else {
        return Ok(());
    };
    channel.write_all(&answer).await?;
    channel.shutdown().await
}
