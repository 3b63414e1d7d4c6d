//! Questions and channels to other nodes, each of which has a stream of its own, in both directions.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use quinn::Connection;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::channel::{Channel, Opened};
use crate::frame::LONGEST;

/// The first byte of a stream: what follows.
const QUESTION: u8 = 0;
const CHANNEL: u8 = 1;

/// How many answers to a question may wait to be sent.
const ANSWERS: usize = 4;

/// A question that another node has asked.
#[derive(Debug)]
pub struct Question {
    /// The node that asks.
    pub from: Ipv4Addr,
    /// What it asks, which may be secret.
    pub text: Zeroizing<Vec<u8>>,
    /// Takes the answers, of a byte each. When it is dropped, there are no more.
    pub answers: mpsc::Sender<u8>,
}

/// The answers to a question. If this is dropped, the other node is told that nobody wants more of them. If it is dropped
/// before the first, the question is taken back: it does not arrive later than those that are asked then.
#[derive(Debug)]
pub struct Answers {
    channel: Channel,
    are_begun: bool,
}

/// The handle with which any task reaches one other node: the connection there, while there is one.
#[derive(Clone, Debug)]
pub struct Ask(pub(crate) watch::Receiver<Option<Connection>>);

impl Ask {
    /// Asks the node, as soon as it can be reached. It may have several answers.
    ///
    /// # Errors
    /// The connection to the node has ended.
    pub async fn ask(&self, text: &[u8]) -> io::Result<Answers> {
        let mut channel = self.channel().await?;
        channel.write_u8(QUESTION).await?;
        channel.write_all(text).await?;
        channel.shutdown().await?;
        Ok(Answers {
            channel,
            are_begun: false,
        })
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

impl Answers {
    /// The next answer.
    ///
    /// # Errors
    /// There are no more, or the connection to the node has ended.
    pub async fn next(&mut self) -> io::Result<u8> {
        let answer = self.channel.read_u8().await?;
        self.are_begun = true;
        Ok(answer)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if !self.are_begun {
            self.channel.take_back();
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

/// Has a question answered, for as long as there are answers that the other node wants.
async fn answer(
    mut channel: Channel,
    from: Ipv4Addr,
    questions: mpsc::Sender<Question>,
) -> io::Result<()> {
    let text = Zeroizing::new(channel.read_to_end(LONGEST).await?);
    let (answers, mut answered) = mpsc::channel(ANSWERS);
    let question = Question {
        from,
        text,
        answers,
    };
    questions.send(question).await.map_err(io::Error::other)?;
    loop {
        tokio::select! {
            answer = answered.recv() => match answer {
                Some(answer) => channel.write_u8(answer).await?,
                None => return channel.shutdown().await,
            },
            () = channel.is_unwanted() => return Ok(()),
        }
    }
}
