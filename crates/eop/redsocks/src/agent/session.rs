//! A session of a program that writes and reads bytes. It goes from one server to another.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eop_protocol::wire::{Decoder, Head, Piece};
use eop_protocol::{Client, Kept, Unclear, Verdict};
use socket2::SockRef;
use tokio::io::{
    AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::net::TcpStream;
use tracing::{debug, warn};

use super::{Options, link, stream::Handle};
use crate::pipe::{PIECE, Pipe};

/// The reason why a session is reset.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Session(#[from] eop_protocol::Error),
    #[error(transparent)]
    Protocol(#[from] eop_protocol::wire::Error),
    #[error(transparent)]
    Unclear(#[from] Unclear),
    #[error(transparent)]
    Io(#[from] io::Error),
}

enum After {
    Move,
    End,
}

struct Session {
    options: Arc<Options>,
    client: Client,
    kept: Kept,
    decoder: Decoder,
    head: Head,
    from_program: ReadHalf<DuplexStream>,
    to_program: WriteHalf<DuplexStream>,
    /// The bytes on their way to the server.
    up: Pipe,
    /// The bytes on their way to the program.
    down: Pipe,
    /// Whether the program has ended its direction.
    said_all: bool,
}

/// Begins a session on a connection to a server that was found to speak EOP. `first` are the bytes that have arrived
/// already.
pub(super) fn begin(
    options: Arc<Options>,
    stream: TcpStream,
    client: Client,
    first: Vec<u8>,
) -> Handle {
    let (near, inner) = duplex(PIECE);
    let failed = Arc::new(AtomicBool::new(false));
    let says = Arc::clone(&failed);
    let (from_program, to_program) = split(inner);
    let mut session = Session {
        kept: Kept::new(options.kept),
        options,
        client,
        decoder: link::decoder(),
        head: Head::Normal,
        from_program,
        to_program,
        up: Pipe::default(),
        down: Pipe::default(),
        said_all: false,
    };
    let task = tokio::spawn(async move {
        if let Err(error) = session.run(stream, first).await {
            warn!("a connection is reset: {error}");
            // This is set before `session` is dropped, which ends the bytes at the near end.
            says.store(true, Ordering::Release);
        }
    });
    let task = task.abort_handle();
    Handle { near, failed, task }
}

impl Session {
    async fn run(&mut self, mut stream: TcpStream, mut first: Vec<u8>) -> Result<(), Failed> {
        loop {
            // If the connection ends early for whatever reason, the server must not mistake a part for the whole.
            SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
            let after = if self.receive(&std::mem::take(&mut first))? {
                After::Move
            } else {
                self.serve(&mut stream).await?
            };
            // Nothing is left on the connection that could be lost.
            let _ = SockRef::from(&stream).set_linger(None);
            match after {
                After::End => return Ok(()),
                After::Move => stream = self.move_on().await?,
            }
        }
    }

    /// Carries bytes in both directions until the server redirects, or both directions have ended.
    async fn serve(&mut self, stream: &mut TcpStream) -> Result<After, Failed> {
        let (mut from_server, mut to_server) = stream.split();
        let (mut outgoing, mut incoming) = (vec![0; PIECE], vec![0; PIECE]);
        let (mut shut_up, mut shut_down, mut ended, mut deaf) = (false, false, false, false);
        loop {
            if self.said_all && self.up.is_empty() && !shut_up {
                shut_up = true;
                // An error is ignored, as that of the write below.
                let _ = to_server.shutdown().await;
            }
            if ended && self.down.is_empty() && !shut_down {
                shut_down = true;
                self.to_program.shutdown().await?;
            }
            if (shut_up || deaf) && shut_down {
                return Ok(After::End);
            }
            tokio::select! {
                read = self.from_program.read(&mut outgoing),
                        if self.up.is_empty() && !self.said_all && !deaf => {
                    let piece = &outgoing[..read?];
                    self.said_all = piece.is_empty();
                    self.send(piece);
                }
                wrote = self.up.drain(&mut to_server), if !self.up.is_empty() => {
                    if wrote.is_err() {
                        // A REDIRECT may have arrived before the end.
                        deaf = true;
                        self.up.clear();
                    }
                }
                read = from_server.read(&mut incoming), if self.down.is_empty() && !ended => {
                    match read {
                        Ok(0) => {
                            self.decoder.finish()?;
                            if self.kept.is_unused() && self.client.handle_lost()? {
                                return Ok(After::Move);
                            }
                            ended = true;
                        }
                        Ok(count) => {
                            if self.receive(&incoming[..count])? {
                                return Ok(After::Move);
                            }
                        }
                        Err(_) if self.kept.is_unused() && self.client.handle_lost()? => {
                            return Ok(After::Move);
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                wrote = self.down.drain(&mut self.to_program), if !self.down.is_empty() => wrote?,
            }
        }
    }

    fn send(&mut self, piece: &[u8]) {
        if !piece.is_empty() {
            self.kept.handle_sent(piece);
            // A piece has at most PIECE bytes.
            self.up.put(&Head::normal(piece.len() as u32));
            self.up.put(piece);
        }
    }

    /// Takes bytes that the server sends. Returns `true` if the server has redirected the session.
    fn receive(&mut self, mut bytes: &[u8]) -> Result<bool, Failed> {
        while let Some(piece) = self.decoder.next(&mut bytes)? {
            match piece {
                Piece::Head(head, _) => {
                    if head == Head::Normal {
                        self.kept.handle_answer();
                    }
                    self.head = head;
                }
                Piece::Data(data) => self.down.put(data),
                Piece::End => match self.client.handle_message(&self.head)? {
                    Verdict::Deliver | Verdict::Nothing => {}
                    Verdict::Move | Verdict::DeliverAndMove { .. } | Verdict::Redo { .. } => {
                        if let Head::Redirect(redirect) = self.head {
                            self.kept.handle_redirect(&redirect)?;
                        }
                        return Ok(true);
                    }
                },
            }
        }
        Ok(false)
    }

    /// Connects to the server that the session moves to. What this end says first there is then ready to be sent.
    async fn move_on(&mut self) -> Result<TcpStream, Failed> {
        if let Some(not_allowed) = self.client.not_allowed() {
            warn!("{not_allowed}");
        }
        loop {
            let to = self.client.target();
            match link::connect(to, self.options.connect_timeout).await {
                Ok(stream) => {
                    debug!(%to, "redirected");
                    self.open();
                    return Ok(stream);
                }
                Err(error) => {
                    debug!(%to, %error, "the server that the redirect names does not answer");
                    self.client.handle_unreachable()?;
                }
            }
        }
    }

    fn open(&mut self) {
        self.decoder = link::decoder();
        self.up.clear();
        if let Some(hello) = self.client.handle_connected().hello {
            self.up.put(&Head::Hello(hello).bytes(0));
        }
        let again = self.kept.again();
        if !again.is_empty() {
            // At most `Options::kept` bytes are kept, far fewer than 4 GiB.
            self.up.put(&Head::normal(again.len() as u32));
            self.up.put(again);
        }
    }
}
